//! One operation's statements with their tables and parameters. The buffers are used again for the next
//! operation.

use dbdyno_db::Param;

use crate::oltp::OltpSetup;
use crate::oltp::distribution::IdDistribution;
use crate::oltp::draws::OltpDraws;
use crate::oltp::mix::StatementSlot;
use crate::oltp::rows::{C_LENGTH, PAD_LENGTH, push_c, push_pad};
use crate::oltp::sql::OltpStatement;

/// A statement that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct ReadyStatement {
    pub(crate) kind: OltpStatement,
    group: u32,
    /// Number of the table, from 0.
    pub(crate) table: usize,
    pub(crate) params: Vec<Param>,
}

#[derive(Debug)]
pub(crate) struct OltpOperation {
    statements: Vec<ReadyStatement>,
    distribution: IdDistribution,
    tables: u64,
    one_table: bool,
    /// The table of all statements (from 0), for a test whose connections have one table each.
    fixed_table: Option<usize>,
    table_size: u64,
    /// What is added to a draw. Draws are from 1 to the table's size, and ids and `k` are higher by
    /// this.
    offset: u64,
    /// A range spans its first id and this many more.
    span: i64,
}

impl OltpOperation {
    pub(crate) fn new(places: &[StatementSlot], setup: &OltpSetup, fixed_table: Option<usize>) -> Self {
        let options = &setup.options;
        let ready =
            |&StatementSlot { kind, group }: &StatementSlot| ReadyStatement { kind, group, table: 0, params: empty_params(kind) };
        Self {
            statements: places.iter().map(ready).collect(),
            distribution: IdDistribution::new(options, options.table_size),
            tables: options.tables.into(),
            one_table: options.one_table,
            fixed_table,
            table_size: options.table_size,
            offset: options.first_id - 1,
            // Where the statement adds the span, both parameters are the first id.
            span: setup.added_span().map_or(i64::from(options.range_size) - 1, |_| 0),
        }
    }

    pub(crate) fn statements(&self) -> &[ReadyStatement] {
        &self.statements
    }

    /// Draws tables and parameters of one operation. `new_id` is the id of a row that the client
    /// numbers.
    pub(crate) fn draw(&mut self, draws: &mut OltpDraws, new_id: i64) {
        let Self { statements, distribution, tables, one_table, fixed_table, table_size, offset, span } =
            self;
        let (mut group, mut table, mut deleted) = (None, 0, 0);
        let id = |draws: &mut OltpDraws| (*offset + distribution.draw(draws)) as i64;
        for statement in statements.iter_mut().filter(|statement| !statement.kind.is_bracket()) {
            let is_new = group.is_none_or(|before| before != statement.group && !*one_table);
            if is_new && *tables > 1 {
                table = fixed_table.unwrap_or_else(|| draws.below(*tables) as usize);
            }
            group = Some(statement.group);
            statement.table = table;
            let params = &mut statement.params;
            match statement.kind {
                OltpStatement::Begin | OltpStatement::Commit | OltpStatement::Scan => {}
                OltpStatement::Points(..) => params.iter_mut().for_each(|param| *param = Param::Int(id(draws))),
                OltpStatement::HotPoints(_) => {
                    let middle = (*offset + *table_size / 2) as i64;
                    (1..).zip(params.iter_mut()).for_each(|(n, param)| *param = Param::Int(middle + n));
                }
                OltpStatement::Range(_, more) => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + i64::from(more));
                }
                OltpStatement::ListUpdate(_) => {
                    params[1..].iter_mut().for_each(|param| *param = Param::Int(id(draws)));
                    set_text(&mut params[0], draws, push_c);
                }
                OltpStatement::Point | OltpStatement::IndexUpdate => params[0] = Param::Int(id(draws)),
                OltpStatement::SimpleRange
                | OltpStatement::SumRange
                | OltpStatement::OrderRange
                | OltpStatement::DistinctRange
                | OltpStatement::CountRange => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + *span);
                }
                OltpStatement::NonIndexUpdate => {
                    params[1] = Param::Int(id(draws));
                    set_text(&mut params[0], draws, push_c);
                }
                OltpStatement::Delete => {
                    deleted = id(draws);
                    params[0] = Param::Int(deleted);
                }
                OltpStatement::Insert => fill_row(params, Some(deleted), id(draws), draws),
                OltpStatement::NewRowWithId => fill_row(params, Some(new_id), id(draws), draws),
                OltpStatement::NewRow => fill_row(params, None, id(draws), draws),
            }
        }
    }
}

/// Returns parameters of the right types, to be filled in.
fn empty_params(kind: OltpStatement) -> Vec<Param> {
    let int = || Param::Int(0);
    let c = || Param::Text(Vec::with_capacity(C_LENGTH));
    let pad = || Param::Text(Vec::with_capacity(PAD_LENGTH));
    match kind {
        OltpStatement::Begin | OltpStatement::Commit | OltpStatement::Scan => vec![],
        OltpStatement::Points(_, count) | OltpStatement::HotPoints(count) => vec![int(); count as usize],
        OltpStatement::ListUpdate(count) => [vec![c()], vec![int(); count as usize]].concat(),
        OltpStatement::Point | OltpStatement::IndexUpdate | OltpStatement::Delete => vec![int()],
        OltpStatement::SimpleRange
        | OltpStatement::SumRange
        | OltpStatement::OrderRange
        | OltpStatement::DistinctRange
        | OltpStatement::CountRange
        | OltpStatement::Range(..) => vec![int(), int()],
        OltpStatement::NonIndexUpdate => vec![c(), int()],
        OltpStatement::Insert | OltpStatement::NewRowWithId => vec![int(), int(), c(), pad()],
        OltpStatement::NewRow => vec![int(), c(), pad()],
    }
}

/// Fills in the columns of a row, with its id where the client gives it.
fn fill_row(params: &mut [Param], id: Option<i64>, k: i64, draws: &mut OltpDraws) {
    let at = usize::from(id.is_some());
    if let Some(id) = id {
        params[0] = Param::Int(id);
    }
    params[at] = Param::Int(k);
    set_text(&mut params[at + 1], draws, push_c);
    set_text(&mut params[at + 2], draws, push_pad);
}

/// Writes a new text into the old one's memory.
fn set_text(param: &mut Param, draws: &mut OltpDraws, push: fn(&mut OltpDraws, &mut Vec<u8>)) {
    if let Param::Text(text) = param {
        text.clear();
        push(draws, text);
    }
}
