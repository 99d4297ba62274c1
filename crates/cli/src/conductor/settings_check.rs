//! Looks at each variant before anything is measured: it starts the server once, reads its settings
//! back, and stops it.

use dbdyno_analyse::parity::{compared, effective};
use dbdyno_db::server::Data;
use dbdyno_db::{Session, describe};
use dbdyno_record::{RunEvent, ServerInfo};
use dbdyno_report::parity_refusal;

use crate::conductor::Conductor;
use crate::conductor::cell::server_info;
use crate::exit::{ExitError, Fault, INTERRUPTED};
use crate::prepare::Prepared;
use crate::{parity, time};

impl Conductor<'_> {
    /// Ends the run when the variants differ in settings that decide results and the plan does not
    /// say so.
    pub(crate) fn refuse_unequal(&mut self) -> Result<(), ExitError> {
        parity::check_differs(self.plan)?;
        let mut subjects = Vec::new();
        for variant in self.variants {
            self.progress.busy("a look at the settings of each variant");
            let planned = parity::planned(self.plan, &variant.info.name);
            let server = match self.unless_cancelled(self.read_back(variant)) {
                Some(server) if !self.cancelled() => server,
                _ => return Err(ExitError::silent(INTERRUPTED)),
            };
            let server = server
                .map_err(|error| ExitError::server(format!("variant {}: {error}", variant.info.name)))?;
            subjects.push(effective(&variant.info, &server, &planned));
        }
        let circumstances = parity::circumstances_of(self.plan);
        let parity = compared(&subjects, &self.plan.differs, circumstances);
        let Some(refusal) = parity_refusal(&parity) else { return Ok(()) };
        self.writer.event(&RunEvent::Warning { at: time::now(), text: refusal.clone() })?;
        Err(ExitError::usage(refusal))
    }

    async fn read_back(&self, variant: &Prepared) -> Result<ServerInfo, Fault> {
        let name = format!("look-{}", variant.info.name);
        let (data_dir, log) =
            (self.data_root.join(&name), self.writer.logs_dir().join(format!("{name}.log")));
        let database = self.database(variant, data_dir, log, None, Data::Fresh).await?;
        let described = async {
            let mut session = database.connect_to_probe().await?;
            let description = describe(&mut session).await;
            session.close().await;
            description
        };
        let server = described.await.map(|described| server_info(described, &database));
        // A fault at the server's end is reported when the server is measured.
        let _ = database.end(false, self.plan.host.stop_timeout.0, &self.cancel);
        Ok(server?)
    }
}
