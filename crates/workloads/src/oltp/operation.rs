//! One operation's statements with their tables and parameters. The buffers are used again for the next
//! operation.

use dbdyno_db::Param;

use crate::oltp::Setup;
use crate::oltp::distribution::Distribution;
use crate::oltp::draws::Draws;
use crate::oltp::mix::Slot;
use crate::oltp::rows::{C_LENGTH, PAD_LENGTH, push_c, push_pad};
use crate::oltp::sql::Kind;

/// A statement that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) kind: Kind,
    group: u32,
    /// Number of the table, from 0.
    pub(crate) table: usize,
    pub(crate) params: Vec<Param>,
}

#[derive(Debug)]
pub(crate) struct Operation {
    statements: Vec<Ready>,
    distribution: Distribution,
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

impl Operation {
    pub(crate) fn new(places: &[Slot], setup: &Setup, fixed_table: Option<usize>) -> Self {
        let options = &setup.options;
        let ready =
            |&Slot { kind, group }: &Slot| Ready { kind, group, table: 0, params: empty_params(kind) };
        Self {
            statements: places.iter().map(ready).collect(),
            distribution: Distribution::new(options, options.table_size),
            tables: options.tables.into(),
            one_table: options.one_table,
            fixed_table,
            table_size: options.table_size,
            offset: options.first_id - 1,
            // Where the statement adds the span, both parameters are the first id.
            span: setup.added_span().map_or(i64::from(options.range_size) - 1, |_| 0),
        }
    }

    pub(crate) fn statements(&self) -> &[Ready] {
        &self.statements
    }

    /// Draws tables and parameters of one operation. `new_id` is the id of a row that the client
    /// numbers.
    pub(crate) fn draw(&mut self, draws: &mut Draws, new_id: i64) {
        let Self { statements, distribution, tables, one_table, fixed_table, table_size, offset, span } =
            self;
        let (mut group, mut table, mut deleted) = (None, 0, 0);
        let id = |draws: &mut Draws| (*offset + distribution.draw(draws)) as i64;
        for statement in statements.iter_mut().filter(|statement| !statement.kind.is_bracket()) {
            let is_new = group.is_none_or(|before| before != statement.group && !*one_table);
            if is_new && *tables > 1 {
                table = fixed_table.unwrap_or_else(|| draws.below(*tables) as usize);
            }
            group = Some(statement.group);
            statement.table = table;
            let params = &mut statement.params;
            match statement.kind {
                Kind::Begin | Kind::Commit | Kind::Scan => {}
                Kind::Points(..) => params.iter_mut().for_each(|param| *param = Param::Int(id(draws))),
                Kind::HotPoints(_) => {
                    let middle = (*offset + *table_size / 2) as i64;
                    (1..).zip(params.iter_mut()).for_each(|(n, param)| *param = Param::Int(middle + n));
                }
                Kind::Range(_, more) => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + i64::from(more));
                }
                Kind::ListUpdate(_) => {
                    params[1..].iter_mut().for_each(|param| *param = Param::Int(id(draws)));
                    set_text(&mut params[0], draws, push_c);
                }
                Kind::Point | Kind::IndexUpdate => params[0] = Param::Int(id(draws)),
                Kind::SimpleRange
                | Kind::SumRange
                | Kind::OrderRange
                | Kind::DistinctRange
                | Kind::CountRange => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + *span);
                }
                Kind::NonIndexUpdate => {
                    params[1] = Param::Int(id(draws));
                    set_text(&mut params[0], draws, push_c);
                }
                Kind::Delete => {
                    deleted = id(draws);
                    params[0] = Param::Int(deleted);
                }
                Kind::Insert => fill_row(params, Some(deleted), id(draws), draws),
                Kind::NewRowWithId => fill_row(params, Some(new_id), id(draws), draws),
                Kind::NewRow => fill_row(params, None, id(draws), draws),
            }
        }
    }
}

/// Returns parameters of the right types, to be filled in.
fn empty_params(kind: Kind) -> Vec<Param> {
    let int = || Param::Int(0);
    let c = || Param::Text(Vec::with_capacity(C_LENGTH));
    let pad = || Param::Text(Vec::with_capacity(PAD_LENGTH));
    match kind {
        Kind::Begin | Kind::Commit | Kind::Scan => vec![],
        Kind::Points(_, count) | Kind::HotPoints(count) => vec![int(); count as usize],
        Kind::ListUpdate(count) => [vec![c()], vec![int(); count as usize]].concat(),
        Kind::Point | Kind::IndexUpdate | Kind::Delete => vec![int()],
        Kind::SimpleRange
        | Kind::SumRange
        | Kind::OrderRange
        | Kind::DistinctRange
        | Kind::CountRange
        | Kind::Range(..) => vec![int(), int()],
        Kind::NonIndexUpdate => vec![c(), int()],
        Kind::Insert | Kind::NewRowWithId => vec![int(), int(), c(), pad()],
        Kind::NewRow => vec![int(), c(), pad()],
    }
}

/// Fills in the columns of a row, with its id where the client gives it.
fn fill_row(params: &mut [Param], id: Option<i64>, k: i64, draws: &mut Draws) {
    let at = usize::from(id.is_some());
    if let Some(id) = id {
        params[0] = Param::Int(id);
    }
    params[at] = Param::Int(k);
    set_text(&mut params[at + 1], draws, push_c);
    set_text(&mut params[at + 2], draws, push_pad);
}

/// Writes a new text into the old one's memory.
fn set_text(param: &mut Param, draws: &mut Draws, push: fn(&mut Draws, &mut Vec<u8>)) {
    if let Param::Text(text) = param {
        text.clear();
        push(draws, text);
    }
}
