//! Finds whether a server takes `LOAD DATA LOCAL INFILE`, which MySQL 8.0 and later do not take by
//! default.

use std::time::Instant;

use dbdyno_db::{AnySession, Class, DbError, RowStream, Session, first_i64};
use dbdyno_plan::Plan;
use serde_json::json;

use crate::{Context, Error, Result, Work};

const ALLOW: &str = "SET GLOBAL local_infile = ON";

/// Returns whether the server of `session` takes the rows that a workload of `plan` streams in this
/// `form`. It also holds where no workload streams rows in this way.
pub async fn takes_streams(plan: &Plan, form: RowStream, session: &mut AnySession) -> Result<bool, DbError> {
    let are_streamed = plan.workload.iter().any(|(_, options)| options.needs().row_streams);
    Ok(!are_streamed || form != RowStream::LocalInfile || is_on(session).await?)
}

/// Returns whether the server takes streamed rows. A server without this setting takes them, because
/// only servers that can stream rows come here.
async fn is_on(session: &mut AnySession) -> Result<bool, DbError> {
    match session.rows("SELECT @@GLOBAL.local_infile").await {
        Err(error) if error.class != Class::Lost => Ok(true),
        answer => Ok(first_i64(&answer?) == Some(1)),
    }
}

/// Switches the setting on in a server that dbdyno owns. Others were refused before the run.
pub(crate) async fn allow_local_infile(context: &Context, session: &mut AnySession) -> Result<Option<Work>> {
    if !context.stores_data() || !context.owned {
        return Ok(None);
    }
    if is_on(session).await.map_err(Error::during("asking whether local_infile is on"))? {
        return Ok(None);
    }
    let began = Instant::now();
    session.query(ALLOW.as_bytes()).await.map_err(Error::during("switching local_infile on"))?;
    Ok(Some(Work::new("allow local_infile", began.elapsed(), [("statement", json!(ALLOW))])))
}
