//! The files that a plan names.

use std::path::PathBuf;

use crate::Plan;

impl Plan {
    /// Paths of what the variants need: option files, files of intents, base directories, keys and
    /// certificates.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut all = Vec::new();
        for variant in &mut self.variants {
            all.extend(variant.config.iter_mut().flat_map(|config| config.files_mut()));
            let named = [
                &mut variant.basedir,
                &mut variant.my_cnf,
                &mut variant.postgresql_conf,
                &mut variant.option_file,
                &mut variant.server_public_key,
            ];
            all.extend(named.into_iter().flatten());
            if let Some(tls) = &mut variant.tls {
                all.extend([&mut tls.ca, &mut tls.cert, &mut tls.key].into_iter().flatten());
            }
        }
        all
    }
}
