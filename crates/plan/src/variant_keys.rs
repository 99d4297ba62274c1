//! Keys of a variant that name files, and keys that are for the servers of one family of products.

use std::path::PathBuf;
use std::slice;

use dbdyno_model::Variant;

use crate::Plan;
use crate::products::{FAMILIES, Family, a_server};

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

/// Those that the variant has.
pub fn product_keys(variant: &Variant) -> Vec<ProductKey> {
    let kind = variant.kind();
    let (is_started, is_address) = (kind.is_started(), kind.is_address());
    let files = own_option_files(variant).map(|(family, _)| ProductKey {
        name: family.option_file_key,
        family: family.driver,
        only_for: STARTED.to_owned(),
        fits: is_started,
    });
    let others = FAMILIES.iter().flat_map(|family| {
        let server = a_server(slice::from_ref(family));
        let address = format!("the address of {server}");
        let of_servers = family.keys.iter().map(move |key| (key, server.clone(), is_started || is_address));
        let of_addresses = family.address_keys.iter().map(move |key| (key, address.clone(), is_address));
        let said = of_servers.chain(of_addresses).filter(|((_, is_said), ..)| is_said(variant));
        said.map(|((name, _), only_for, fits)| ProductKey { name, family: family.driver, only_for, fits })
    });
    files.chain(others).collect()
}

/// The option file of its server.
pub fn own_option_file(variant: &Variant) -> Option<&PathBuf> {
    own_option_files(variant).map(|(_, file)| file).next()
}

/// The option files that it names, and whose they are. A server reads one of them.
pub(crate) fn own_option_files(variant: &Variant) -> impl Iterator<Item = (&'static Family, &PathBuf)> {
    FAMILIES.iter().filter_map(|family| Some((family, (family.option_file)(variant).as_ref()?)))
}

/// The option file that `key` names.
pub fn own_option_file_mut<'v>(variant: &'v mut Variant, key: &str) -> Option<&'v mut PathBuf> {
    let family = FAMILIES.iter().find(|family| family.option_file_key == key)?;
    (family.option_file_mut)(variant).as_mut()
}

fn each_file_of(variant: &mut Variant, change: &mut dyn FnMut(&mut PathBuf)) {
    variant.config.iter_mut().flat_map(|config| config.files_mut()).for_each(&mut *change);
    for family in FAMILIES {
        (family.option_file_mut)(variant).iter_mut().for_each(&mut *change);
    }
    let named = [&mut variant.basedir, &mut variant.option_file, &mut variant.server_public_key];
    let tls = variant.tls.iter_mut().flat_map(|tls| [&mut tls.ca, &mut tls.cert, &mut tls.key]);
    named.into_iter().chain(tls).flatten().for_each(change);
}

/// Changes the paths of what the variants need: option files, files of intents, base
/// directories, keys and certificates.
pub fn each_file(plan: &mut Plan, mut change: impl FnMut(&mut PathBuf)) {
    plan.variants.iter_mut().for_each(|variant| each_file_of(variant, &mut change));
}
