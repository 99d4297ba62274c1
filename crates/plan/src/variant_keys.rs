//! Keys of a variant that name files, and keys that are for the servers of one family of products.

use std::path::PathBuf;
use std::slice;

use crate::products::{FAMILIES, Family, a_server};
use crate::{Plan, Variant};

/// Whose a key of a variant is.
#[derive(Debug)]
pub struct ProductKey {
    pub name: &'static str,
    /// The driver of the family.
    pub family: &'static str,
    /// What a variant must be to have it, and whether this one is.
    pub(crate) only_for: String,
    pub(crate) fits: bool,
}

pub(crate) const STARTED: &str = "a server that dbdyno starts (server or basedir)";

impl Variant {
    /// Those that the variant has.
    pub fn product_keys(&self) -> Vec<ProductKey> {
        let kind = self.kind();
        let (is_started, is_address) = (kind.is_started(), kind.is_address());
        let files = self.own_option_files().map(|(family, _)| ProductKey {
            name: family.option_file_key,
            family: family.driver,
            only_for: STARTED.to_owned(),
            fits: is_started,
        });
        let others = FAMILIES.iter().flat_map(|family| {
            let server = a_server(slice::from_ref(family));
            let address = format!("the address of {server}");
            let of_servers =
                family.keys.iter().map(move |key| (key, server.clone(), is_started || is_address));
            let of_addresses = family.address_keys.iter().map(move |key| (key, address.clone(), is_address));
            let said = of_servers.chain(of_addresses).filter(|((_, is_said), ..)| is_said(self));
            said.map(|((name, _), only_for, fits)| ProductKey { name, family: family.driver, only_for, fits })
        });
        files.chain(others).collect()
    }

    /// The option file of its server.
    pub fn own_option_file(&self) -> Option<&PathBuf> {
        self.own_option_files().map(|(_, file)| file).next()
    }

    /// The option files that it names, and whose they are. A server reads one of them.
    pub(crate) fn own_option_files(&self) -> impl Iterator<Item = (&'static Family, &PathBuf)> {
        FAMILIES.iter().filter_map(|family| Some((family, (family.option_file)(self).as_ref()?)))
    }

    /// The option file that `key` names.
    pub fn own_option_file_mut(&mut self, key: &str) -> Option<&mut PathBuf> {
        let family = FAMILIES.iter().find(|family| family.option_file_key == key)?;
        (family.option_file_mut)(self).as_mut()
    }

    fn each_file(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        self.config.iter_mut().flat_map(|config| config.files_mut()).for_each(&mut *change);
        for family in FAMILIES {
            (family.option_file_mut)(self).iter_mut().for_each(&mut *change);
        }
        let named = [&mut self.basedir, &mut self.option_file, &mut self.server_public_key];
        let tls = self.tls.iter_mut().flat_map(|tls| [&mut tls.ca, &mut tls.cert, &mut tls.key]);
        named.into_iter().chain(tls).flatten().for_each(change);
    }
}

impl Plan {
    /// Changes the paths of what the variants need: option files, files of intents, base
    /// directories, keys and certificates.
    pub fn each_file(&mut self, mut change: impl FnMut(&mut PathBuf)) {
        self.variants.iter_mut().for_each(|variant| variant.each_file(&mut change));
    }
}
