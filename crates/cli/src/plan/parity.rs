//! Compares the variants' settings before a run (parity). It predicts them from the configurations,
//! and from the settings that each build reported when it was downloaded or added.

use std::path::Path;

use dbdyno_analyse::parity::{
    Build, Circumstances, Parity, Planned, SettingsSource, Subject, buffer_pool_bytes, circumstances,
    classes, compared, size_text,
};
use dbdyno_db::server::{Base, servers_dir};
use dbdyno_fetch::{answer_of, by_name, probe_embedded};
use dbdyno_model::Variant;
use dbdyno_plan::Plan;
use dbdyno_products::VariantKind;
use dbdyno_record::VariantInfo;
use dbdyno_report::parity_refusal;
use tokio::runtime::Runtime;

use crate::exit::{ExitError, USAGE};
use crate::plan::prepare::{PreparedVariant, check_login, prepare_one, refusal, workloads};
use crate::{host, terminal};

/// Refuses a plan whose `differs` names an unknown class of settings.
pub(crate) fn check_differs(plan: &Plan) -> Result<(), ExitError> {
    if let Some(unknown) = plan.differs.iter().find(|id| !classes().iter().any(|class| class.id == **id)) {
        let known: Vec<&str> = classes().iter().map(|class| class.id.as_str()).collect();
        return Err(ExitError::usage(format!(
            "differs of the plan names {unknown:?}, which is no class of settings; classes: {}",
            known.join(", ")
        )));
    }
    Ok(())
}

/// Returns a variant's settings from the plan, without its option file.
pub(crate) fn planned(plan: &Plan, name: &str) -> Planned {
    Planned {
        variant: plan.variant(name).cloned().unwrap_or_default(),
        sends_text_only: !plan.workload.iter().any(|(_, options)| options.needs().prepares),
    }
}

/// Predicts the settings of a plan's variants, without preparing any. The first value is `None`
/// when the plan does not compare them. The second value is an error where a run would refuse the
/// plan.
pub(crate) fn of_plan(plan: &Plan) -> Result<(Option<Parity>, Result<(), ExitError>), ExitError> {
    let runtime = host::event_loop()?;
    let mut wrong = Vec::new();
    let variants = plan.variants.iter().map(|variant| predicted(plan, variant, &runtime, &mut wrong));
    let variants = variants.collect::<Result<_, _>>()?;
    let parity = predict(plan, variants)?;
    let can_run = match wrong.is_empty() {
        true => parity.as_ref().map_or(Ok(()), |parity| refuse(plan, parity)),
        false => Err(refusal(wrong)),
    };
    Ok((parity, can_run))
}

fn predict(plan: &Plan, variants: Vec<(VariantInfo, Option<Build>)>) -> Result<Option<Parity>, ExitError> {
    check_differs(plan)?;
    let subjects: Vec<Subject> = variants
        .iter()
        .map(|(info, build)| {
            dbdyno_analyse::parity::predicted(info, build.as_ref(), &planned(plan, &info.name))
        })
        .collect();
    for ((info, _), subject) in variants.iter().zip(&subjects) {
        check_memory(plan, &info.name, buffer_pool_bytes(subject))?;
    }
    if plan.parity == dbdyno_model::Parity::Off {
        return Ok(None);
    }
    Ok(Some(compared(&subjects, &plan.differs, circumstances_of(plan))))
}

pub(crate) fn circumstances_of(plan: &Plan) -> Circumstances {
    let cpus = plan.host.server_cpus.as_ref().map(ToString::to_string);
    circumstances(&workloads(plan, &[]), cpus.as_deref())
}

/// Refuses a configured buffer pool as large as the limit on the server's memory, and warns of such
/// a default. The kernel would kill the server once the pool fills, which may be hours later.
fn check_memory(plan: &Plan, variant: &str, buffer_pool: Option<(u64, bool)>) -> Result<(), ExitError> {
    let (Some(limit), Some((bytes, is_configured))) = (plan.server_memory(variant), buffer_pool) else {
        return Ok(());
    };
    if bytes < limit.0 {
        return Ok(());
    }
    let text = format!(
        "variant {variant}: a buffer pool of {}{} does not fit into server_memory = \"{limit}\", which also holds the rest of the \
         server and the page cache of its files; the kernel would kill the server when the pool fills: lower the one or raise the \
         other",
        size_text(bytes),
        if is_configured { "" } else { ", its default," }
    );
    if is_configured {
        return Err(ExitError::usage(text));
    }
    terminal::warning(&text);
    Ok(())
}

fn predicted(
    plan: &Plan,
    variant: &Variant,
    runtime: &Runtime,
    wrong: &mut Vec<ExitError>,
) -> Result<(VariantInfo, Option<Build>), ExitError> {
    let bare = |external| VariantInfo {
        name: variant.name.clone(),
        server: variant.server.clone().unwrap_or_default(),
        external,
        ..VariantInfo::default()
    };
    // A prediction connects to no server, so nothing is known of one at an address.
    if VariantKind::of(variant).is_address() {
        wrong.extend(check_login(plan, variant).err());
        return Ok((bare(true), None));
    }
    match prepare_one(plan, variant, runtime) {
        Ok(prepared) => {
            let build = build_of(variant, prepared.base());
            Ok((prepared.info, build))
        }
        // The plan would be refused wherever it is run.
        Err(ended) if ended.code == USAGE => Err(ended),
        Err(ended) => {
            wrong.push(ended);
            Ok((bare(false), build_of(variant, None)))
        }
    }
}

/// Returns the settings that a variant's build reported when it was downloaded or added, or the way
/// to query them. `base` is the build where it is installed. The result is `None` where there is no
/// build, and for servers at an address.
fn build_of(variant: &Variant, base: Option<&Base>) -> Option<Build> {
    let by_hand = |name: &str, base: &Path| format!("dbdyno servers add {name} --basedir {}", base.display());
    let (answer, ask) = match VariantKind::of(variant) {
        VariantKind::Null | VariantKind::Address(_) => return None,
        VariantKind::Embedded => (probe_embedded().ok(), String::new()),
        VariantKind::BaseDir(path) => (None, by_hand("NAME", &path)),
        VariantKind::Named(name) => {
            let answer = answer_of(&servers_dir(), &name);
            let answer = answer.map(|answer| (answer.product, answer.version, answer.settings));
            let base = base.filter(|_| by_name(&name).is_err());
            let ask = base.map(|base| by_hand(&name, &base.path));
            (answer, ask.unwrap_or_else(|| format!("dbdyno servers get {name}")))
        }
    };
    let (product, version, settings) = answer.unwrap_or_else(|| {
        let known = base.map(|base| (base.product.to_string(), base.release.to_string()));
        let (product, version) = known.unwrap_or_default();
        (product, version, Default::default())
    });
    Some(Build { product, version, settings, ask })
}

/// Reports what is predicted before a run, or refuses the run.
pub(crate) fn before_a_run(plan: &Plan, variants: &[PreparedVariant]) -> Result<(), ExitError> {
    let variants = plan
        .variants
        .iter()
        .zip(variants)
        .map(|(variant, prepared)| (prepared.info.clone(), build_of(variant, prepared.base())));
    let Some(parity) = predict(plan, variants.collect())? else { return Ok(()) };
    if is_refusing(plan, &parity) {
        return refuse(plan, &parity);
    }
    if let Some(warning) = warning(&parity) {
        terminal::warning(&warning);
    }
    Ok(())
}

/// Whether the plan demands equal settings, and all of them are known.
fn is_refusing(plan: &Plan, parity: &Parity) -> bool {
    let is_sure = parity.variants.iter().all(|variant| variant.settings_source == SettingsSource::Predicted);
    plan.parity == dbdyno_model::Parity::Refuse && is_sure
}

fn refuse(plan: &Plan, parity: &Parity) -> Result<(), ExitError> {
    let refusal = parity_refusal(parity).filter(|_| is_refusing(plan, parity));
    refusal.map_or(Ok(()), |refusal| Err(ExitError::usage(refusal)))
}

/// Writes one sentence on the differences that decide results. It is `None` without any.
fn warning(parity: &Parity) -> Option<String> {
    let differing = parity.unlike();
    (!differing.is_empty()).then(|| {
        format!(
            "the configurations will differ: {}; `dbdyno plan` shows the values and how to make \
             them equal; list intended differences in `differs` of the plan",
            differing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the prediction for one variant under a memory limit of 96 MiB. Its build reported
    /// `settings`, and its configuration is `config`.
    fn under_96_mib(product: &str, settings: &[(&str, &str)], config: &str, parity: &str) -> String {
        let text = format!(
            "name = \"p\"\nparity = \"{parity}\"\n[host]\nserver_memory = \"96 MiB\"\n[[variant]]\nname = \"a\"\n\
             server = \"any\"\n[workload.oltp]\n"
        );
        let plan =
            dbdyno_workloads::plans::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let info = VariantInfo { name: "a".to_owned(), config: config.to_owned(), ..VariantInfo::default() };
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let build = Build {
            product: product.to_owned(),
            version: "8.0.31".to_owned(),
            settings: settings.collect(),
            ask: String::new(),
        };
        match predict(&plan, vec![(info, Some(build))]) {
            Ok(_) => "fits".to_owned(),
            Err(ended) => format!("{}: {}", ended.code, ended.message.unwrap_or_default()),
        }
    }

    #[test]
    fn a_buffer_pool_that_was_configured_and_does_not_fit_into_the_memory_limit_is_refused() {
        let my_cnf = |size: &str| format!("[mysqld]\ninnodb_buffer_pool_size = {size}\n");
        let default = [("innodb_buffer_pool_size", "134217728")];
        insta::assert_snapshot!(under_96_mib("MySQL", &default, &my_cnf("1G"), "warn"), @r#"2: variant a: a buffer pool of 1 GiB does not fit into server_memory = "96 MiB", which also holds the rest of the server and the page cache of its files; the kernel would kill the server when the pool fills: lower the one or raise the other"#);
        // The build was not queried. The pool is 12288 pages of 8 KiB.
        assert!(
            under_96_mib("PostgreSQL", &[], "shared_buffers = 12288\n", "off")
                .contains("buffer pool of 96 MiB")
        );
        assert_eq!(under_96_mib("MySQL", &default, &my_cnf("64M"), "warn"), "fits");
        // The default of 128 MiB only causes a warning, because small data never fill it.
        assert_eq!(under_96_mib("MySQL", &default, "", "warn"), "fits");
    }
}
