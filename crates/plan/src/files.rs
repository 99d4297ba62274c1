//! The files that a plan names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

    /// Files of variants and workloads that are here.
    pub fn present_files(&mut self) -> BTreeSet<PathBuf> {
        let of_workloads: Vec<_> = self.workload.iter().flat_map(|(_, options)| options.files()).collect();
        let of_variants = self.files_mut().into_iter().map(|path| path.clone());
        of_variants.chain(of_workloads).filter(|path| path.exists()).collect()
    }

    /// Names files of variants and workloads by the paths that `place` makes of theirs.
    pub fn move_files(&mut self, place: &dyn Fn(&Path) -> PathBuf) {
        for path in self.files_mut() {
            *path = place(path);
        }
        self.workload.iter_mut().for_each(|options| options.move_files(place));
    }
}
