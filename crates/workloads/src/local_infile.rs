//! Whether a server takes `LOAD DATA LOCAL INFILE`, which MySQL 8.0 and later do not by default.

use std::time::Instant;

use dbdyno_drivers::{AnySession, Session, first_i64};
use serde_json::{Map, json};

use crate::{Context, Error, Work};

const ALLOW: &str = "SET GLOBAL local_infile = ON";

/// A server of ours is asked to take it; of any other we ask whether it does.
///
/// # Errors
/// [`Error::LocalInfileOff`] for a server of others that does not.
pub(crate) async fn allow_local_infile(
    context: &Context,
    session: &mut AnySession,
) -> Result<Option<Work>, Error> {
    if !context.endpoint.capabilities.stores_data {
        return Ok(None);
    }
    let looking = Error::during("asking whether local_infile is on");
    let is_on = session.rows("SELECT @@GLOBAL.local_infile").await.map_err(looking)?;
    if first_i64(&is_on) == Some(1) {
        return Ok(None);
    }
    if !context.owned {
        return Err(Error::LocalInfileOff);
    }
    let began = Instant::now();
    session.query(ALLOW.as_bytes()).await.map_err(Error::during("switching local_infile on"))?;
    let details = Map::from_iter([("statement".to_owned(), json!(ALLOW))]);
    Ok(Some(Work { name: "allow local_infile".to_owned(), duration: began.elapsed(), details }))
}
