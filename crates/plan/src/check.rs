//! Checks what a plan says beyond its types: names, variants, client hosts, sections, published
//! figures, and keys that must go together. It also warns of what is legal but doubtful.

use std::path::Path;

use dbdyno_model::{
    ClientNames, Clients, DataMode, PlanBytes, Published, PublishedFigures, TlsMode, Variant, load_problem,
};
use dbdyno_products::{EMBEDDED, FamilyFacts, ServerAddress, VariantKind, is_word};

use crate::client_wait::{shared_cpus, spin_problem};
use crate::document::{Problem, Segment};
use crate::variant_options::experiment_problem;
use crate::variant_options::{any_server, either, options_problem};
use crate::{Kinds, Mistake, Plan, Workloads};

/// A plan with more blocks than this has a typing error, because each block takes minutes.
const MAX_BLOCKS: u32 = 10_000;

/// A plan with more variants than this comes from a program with a mistake: one block would take
/// days.
const MAX_VARIANTS: usize = 1_000;

/// Longest name in bytes. The limit is in bytes, because a name becomes the name of a directory.
const MAX_NAME_BYTES: usize = 64;

const STARTED: &str = "a server that dbdyno starts (server or basedir)";

const NAME_HELP: &str = "use 1 to 64 letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`";

/// Returns the first mistake of the plan, in the order of the file's parts.
pub(crate) fn first_problem<'a>(plan: &'a Plan, kinds: Kinds<'_>) -> Option<Problem<'a>> {
    top_problem(plan)
        .or_else(|| in_table("host", host_problem(plan)))
        .or_else(|| in_table("load", load_problem(&plan.load)))
        .or_else(|| (0..plan.variants.len()).find_map(|index| variant_problem(plan, index)))
        .or_else(|| base_problem(plan))
        .or_else(|| (0..plan.setups.len()).find_map(|index| setup_problem(plan, index)))
        .or_else(|| workload_problem(plan, kinds))
        .or_else(|| in_table("clients", clients_problem(plan)))
        .or_else(|| section_problem(plan))
        .or_else(|| in_table("report", published_problem(plan)))
}

/// Returns what is legal but doubtful in the plan. Each text is a sentence to show before a run.
pub fn warnings(plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let host = &plan.host;
    if let Some(both) = shared_cpus(host) {
        found.push(format!(
            "server and client share {} (host.server_cpus, host.client_cpus): each slows the other down",
            both.named()
        ));
    }
    if let (Some(threads), Some(client)) = (host.client_threads, &host.client_cpus)
        && threads as usize > client.0.len()
    {
        let cpus = client.0.len();
        found.push(format!(
            "host.client_threads is {threads}, but the client has only {cpus} CPUs ({client})"
        ));
    }
    found.extend(plan.workload.iter().flat_map(|(_, options)| options.warnings()));
    found
}

fn problem<'a>(path: &[Segment<'a>], message: impl Into<String>) -> Option<Problem<'a>> {
    Some(Problem { path: path.to_vec(), message: message.into() })
}

/// Turns a mistake in the plan's table `table` into a problem with its path. The mistake names the
/// key.
fn in_table(table: &'static str, mistake: Option<Mistake>) -> Option<Problem<'static>> {
    let (key, message) = mistake?;
    problem(&[Segment::Key(table), Segment::Key(key)], message)
}

fn top_problem(plan: &Plan) -> Option<Problem<'_>> {
    if !is_name(&plan.name) {
        return problem(&[Segment::Key("name")], format!("the plan's name does not fit: {NAME_HELP}"));
    }
    if !(1..=MAX_BLOCKS).contains(&plan.blocks) {
        return problem(&[Segment::Key("blocks")], format!("blocks must be 1 to {MAX_BLOCKS}"));
    }
    if let Some((key, message)) = experiment_problem(plan) {
        return problem(&[Segment::Key(key)], message);
    }
    if plan.variants.is_empty() {
        let message = "the plan has no variant: add a [[variant]] with a name and a server";
        return problem(&[Segment::Key("variant")], message);
    }
    if plan.variants.len() > MAX_VARIANTS {
        let message = format!(
            "the plan has {} variants, and may have {MAX_VARIANTS}: make several plans of them",
            plan.variants.len()
        );
        return problem(&[Segment::Key("variant"), Segment::Index(MAX_VARIANTS)], message);
    }
    None
}

fn host_problem(plan: &Plan) -> Option<Mistake> {
    let host = &plan.host;
    if host.client_threads == Some(0) {
        let message = "client_threads must be at least 1; leave it out to have as many as are needed";
        return Some(("client_threads", message.to_owned()));
    }
    if let Some(message) = spin_problem(plan) {
        return Some(("client_wait", message));
    }
    let timeouts = [
        ("start_timeout", host.start_timeout),
        ("stop_timeout", host.stop_timeout),
        ("statement_timeout", host.statement_timeout),
    ];
    if let Some((key, _)) = timeouts.into_iter().find(|(_, timeout)| timeout.0.is_zero()) {
        return Some((key, format!("{key} must be longer than 0s")));
    }
    let message = memory_problem(host.server_memory?).or_else(|| {
        let variant = plan.variants.iter().find(|variant| !VariantKind::of(variant).is_started())?;
        Some(format!(
            "server_memory limits servers that dbdyno starts, and variant `{}` is not one: set it in the variants \
             that need it",
            variant.name
        ))
    });
    Some(("server_memory", message?))
}

/// Refuses a memory limit with which no server starts, because the server's own error would be
/// long.
fn memory_problem(memory: PlanBytes) -> Option<String> {
    const MIN: PlanBytes = PlanBytes(32 << 20);
    (memory < MIN).then(|| format!("server_memory is {memory}, but must be at least {MIN}"))
}

fn setup_problem(plan: &Plan, index: usize) -> Option<Problem<'_>> {
    let name = &plan.setups[index].name;
    let message = if !is_name(name) {
        format!("the set-up's name `{name}` does not fit: {NAME_HELP}")
    } else if plan.setups[..index].iter().any(|earlier| earlier.name == *name) {
        format!("two set-ups are named `{name}`: give each its own name")
    } else {
        return None;
    };
    problem(&[Segment::Key("setup"), Segment::Index(index), Segment::Key("name")], message)
}

fn base_problem(plan: &Plan) -> Option<Problem<'_>> {
    let base = plan.base.as_ref()?;
    if plan.variants.iter().any(|variant| &variant.name == base) {
        return None;
    }
    let known: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    let known = known.join(", ");
    problem(&[Segment::Key("base")], format!("base `{base}` is not the name of a variant; variants: {known}"))
}

fn workload_problem<'a>(plan: &'a Plan, kinds: Kinds<'_>) -> Option<Problem<'a>> {
    if plan.workload.is_empty() {
        let tables: Vec<String> = kinds.iter().map(|kind| format!("[workload.{}]", kind.name())).collect();
        let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
        let message = format!("the plan has no workload: add a table {}", either(&tables));
        return problem(&[Segment::Key("workload")], message);
    }
    let mut mistakes = plan.workload.iter().filter_map(|(name, options)| Some((name, options.check(plan)?)));
    let (workload, (key, message)) = mistakes.next().or_else(|| existing_problem(plan))?;
    let mut path = vec![Segment::Key("workload"), Segment::Key(workload)];
    path.extend(key.split('.').map(Segment::Key));
    Some(Problem { path, message })
}

/// Checks a plan that runs on existing tables. Only a server at an address has such tables, and no
/// other workload may make its own next to them. The result also names the workload.
fn existing_problem(plan: &Plan) -> Option<(&str, Mistake)> {
    let all = || plan.workload.iter().map(|(name, options)| (name, options.needs().existing_tables));
    let (workload, _) = all().find(|(_, on_existing)| *on_existing)?;
    if let Some(variant) = plan.variants.iter().find(|variant| !VariantKind::of(variant).is_address()) {
        let message = format!(
            "use_existing is for tables on an external server; variant {} has no address, so it begins with fresh data",
            variant.name
        );
        return Some((workload, ("use_existing", message)));
    }
    let (other, _) = all().find(|(_, on_existing)| !on_existing)?;
    let message = format!(
        "use_existing makes nothing in the database, but workload {other} of the same plan would make its tables there"
    );
    Some((workload, ("use_existing", message)))
}

fn variant_problem(plan: &Plan, index: usize) -> Option<Problem<'_>> {
    let variant = &plan.variants[index];
    let at = |key: &'static str, message: String| {
        problem(&[Segment::Key("variant"), Segment::Index(index), Segment::Key(key)], message)
    };
    if variant.name.is_empty() {
        return at("name", format!("variant {} has no name: add name = \"...\"", index + 1));
    }
    let name = &variant.name;
    if !is_name(name) && plan.control_name().as_ref() != Some(name) {
        return at("name", format!("the variant name `{name}` does not fit: {NAME_HELP}"));
    }
    if plan.variants[..index].iter().any(|earlier| earlier.name == *name) {
        return at("name", format!("two variants are named `{name}`: give each its own name"));
    }
    let own_server = || data_needs_own_server(variant, &plan.workload).map(|message| ("address", message));
    let own = server_problem(variant).or_else(|| option_problem(variant));
    if let Some((key, message)) = own.or_else(own_server) {
        return at(key, format!("variant `{name}` {message}"));
    }
    // The product of a server at an address may be unknown until the run connects to it.
    let (key, message) = options_problem(variant, FamilyFacts::of_variant(variant)?)?;
    let path = ["variant", "options", key].map(Segment::Key);
    problem(&[path[0], Segment::Index(index), path[1], path[2]], format!("variant `{name}` {message}"))
}

/// Returns the key that is wrong in the variant, and the rest of a sentence that begins with the
/// variant's name.
fn server_problem(variant: &Variant) -> Option<Mistake> {
    let said: Vec<&'static str> = [
        ("server", variant.server.is_some()),
        ("basedir", variant.basedir.is_some()),
        ("address", variant.address.is_some()),
    ]
    .into_iter()
    .filter_map(|(key, is_said)| is_said.then_some(key))
    .collect();
    let one_of = "set exactly one of server, basedir and address";
    match said.as_slice() {
        [] => return Some(("name", format!("has no server: {one_of}"))),
        [_] => {}
        [_, second, ..] => {
            return Some((*second, format!("has {} at once: {one_of}", said.join(" and "))));
        }
    }
    if variant.server.as_deref().is_some_and(|server| !is_name(server)) {
        let message = format!(
            "has a server that is neither {}, null nor a name in the servers folder; for a path set basedir",
            EMBEDDED.name
        );
        return Some(("server", message));
    }
    let address = variant.address.as_deref()?;
    match ServerAddress::parse(address) {
        Err(problem) => Some(("address", format!("has an address that {problem}"))),
        Ok(read) if read.tls.is_some() && variant.tls.is_some() => {
            Some(("tls", "has TLS in its address and in tls: keep one".to_owned()))
        }
        Ok(_) => None,
    }
}

/// Finds keys that do not fit the variant's kind, or that contradict each other.
fn option_problem(variant: &Variant) -> Option<Mistake> {
    let kind = VariantKind::of(variant);
    let is_started = kind.is_started();
    let is_address = kind.is_address();
    let is_embedded = kind.is_embedded();
    let is_server = is_started || is_address;
    let address = || "an address".to_owned();
    let of_all = [
        (
            "config",
            variant.config.is_some(),
            is_started || is_embedded,
            format!("{STARTED} and for {}", EMBEDDED.name),
        ),
        ("server_memory", variant.server_memory.is_some(), is_started, STARTED.to_owned()),
        ("own_config", variant.own_config.is_some(), is_started, STARTED.to_owned()),
        (
            "options",
            !variant.options.is_empty(),
            is_server || is_embedded,
            format!("{} and for {}", any_server(), EMBEDDED.name),
        ),
        ("password_env", variant.password_env.is_some(), is_address, address()),
        ("option_file", variant.option_file.is_some(), is_address, address()),
        ("tls", variant.tls.is_some(), is_server, any_server()),
    ];
    let misplaced = of_all.into_iter().find(|(_, is_said, fits, _)| *is_said && !fits);
    if let Some((key, _, _, only_for)) = misplaced {
        return Some((key, format!("has {key}, which is only for {only_for}")));
    }
    if variant.password_env.is_some() && variant.option_file.is_some() {
        let message = "has password_env and option_file at once: the password comes from one of them";
        return Some(("option_file", message.to_owned()));
    }
    if let Some(message) = variant.server_memory.and_then(memory_problem) {
        return Some(("server_memory", format!("has a limit that does not fit: {message}")));
    }
    tls_problem(variant).or_else(|| password_problem(variant))
}

/// Refuses certificate files that would not be used, because their author expects that they are.
fn tls_problem(variant: &Variant) -> Option<Mistake> {
    let tls = variant.tls.as_ref()?;
    let wrong = |message: &str| Some(("tls", format!("has tls {message}")));
    if tls.mode != TlsMode::Verify && tls.ca.is_some() {
        return wrong("with a ca, which only mode = \"verify\" uses: set mode = \"verify\", or leave ca out");
    }
    if tls.cert.is_some() != tls.key.is_some() {
        return wrong("with one of cert and key: a client certificate needs both files");
    }
    None
}

/// Refuses names of password variables that hold anything but word characters, because the names go
/// into the environment.
fn password_problem(variant: &Variant) -> Option<Mistake> {
    let is_wrong = variant.password_env.as_deref().is_some_and(|name| !is_word(name));
    let help = "write the variable's name, never the password itself";
    is_wrong.then(|| {
        ("password_env", format!("has a password_env that is no environment variable's name: {help}"))
    })
}

/// Whether a text can name a variant, a plan or a server. Such a text is also safe as one component
/// of a path.
fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.len() <= MAX_NAME_BYTES
        && text.chars().all(allowed)
        && !text.starts_with(['.', '-'])
        && Path::new(text).file_name().is_some()
}

/// Returns a message if some workload asks for what this variant cannot do. dbdyno can stop a
/// server and give it other data only if it starts that server or if the database is embedded. The
/// message is the rest of a sentence that begins with the variant's name.
fn data_needs_own_server(variant: &Variant, workloads: &Workloads) -> Option<String> {
    if !VariantKind::of(variant).is_address() {
        return None;
    }
    workloads.names().into_iter().find_map(|name| {
        let (data, cold) = workloads.data_of(name);
        let key = match (data, cold.is_any()) {
            (DataMode::Preserve, false) => return None,
            (DataMode::Preserve, true) => "cold".to_owned(),
            (data, _) => format!("data = \"{}\"", data.name()),
        };
        Some(format!("is an external server, but {key} of {name} stops and starts the server: leave it out"))
    })
}

/// Returns the first mistake in `[clients]`: its key inside the table, and what to write.
fn clients_problem(plan: &Plan) -> Option<(&'static str, String)> {
    let clients = plan.clients.as_ref()?;
    if let Some(problem) = hosts_problem(clients) {
        return Some(problem);
    }
    if clients.start.trim().is_empty() {
        return Some(("start", "start must be a command, as \"ssh {host} dbdyno\"".to_owned()));
    }
    let is_reached =
        |kind: VariantKind| matches!(kind, VariantKind::Address(text) if !text.contains("socket="));
    if let Some(variant) = plan.variants.iter().find(|variant| !is_reached(VariantKind::of(variant))) {
        let name = &variant.name;
        let message = format!(
            "client hosts need servers that they reach: let variant `{name}` have an address with a host"
        );
        return Some(("hosts", message));
    }
    let (name, _) = plan.workload.iter().find(|(_, options)| !options.needs().client_hosts)?;
    Some(("hosts", format!("the connections of workload {name} cannot be shared out to client hosts")))
}

fn hosts_problem(clients: &Clients) -> Option<(&'static str, String)> {
    // A host name reaches a shell when it goes through ssh.
    let is_name = |host: &String| {
        host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':')
            && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-:_".contains(letter))
    };
    let problem = match (&clients.hosts, &clients.on) {
        (ClientNames::Named(hosts), None) if !hosts.is_empty() && hosts.iter().all(is_name) => return None,
        (ClientNames::Number(1..), Some(_)) => return None,
        (_, None) => {
            "hosts must be one or more names or addresses, as [\"10.0.0.2\"], or a number with on, which finds them"
        }
        (_, Some(_)) => "hosts must be a number, as 4, when on finds them",
    };
    Some(("hosts", problem.to_owned()))
}

/// Returns the first mistake in a section.
fn section_problem(plan: &Plan) -> Option<Problem<'_>> {
    let variants: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    let setups: Vec<&str> = plan.setups.iter().map(|setup| setup.name.as_str()).collect();
    let steps: Vec<String> =
        plan.workload.iter().flat_map(|(_, options)| options.steps()).map(|step| step.name).collect();
    let unknown = |name: &String, known: &[&str]| !known.contains(&name.as_str());
    for (index, section) in plan.sections.iter().enumerate() {
        let at = |key, message: String| {
            let path = vec![Segment::Key("section"), Segment::Index(index), Segment::Key(key)];
            Some(Problem { path, message })
        };
        let title = &section.title;
        if title.is_empty() {
            return at("title", "a section needs a title".to_owned());
        }
        if let Some(name) = section.variants.iter().chain(&section.base).find(|name| unknown(name, &variants))
        {
            let key = if section.variants.contains(name) { "variants" } else { "base" };
            let known = variants.join(", ");
            return at(key, format!("section `{title}` names the variant `{name}`; variants: {known}"));
        }
        let is_outside = |base: &&String| !section.variants.is_empty() && !section.variants.contains(base);
        if let Some(base) = section.base.as_ref().filter(is_outside) {
            return at("base", format!("the base `{base}` of section `{title}` is none of its variants"));
        }
        if let Some(name) = section.setups.iter().find(|name| unknown(name, &setups)) {
            let known = if setups.is_empty() { "the plan has none".to_owned() } else { setups.join(", ") };
            return at("setups", format!("section `{title}` names the set-up `{name}`; set-ups: {known}"));
        }
        let fits = |pattern: &str| steps.iter().any(|step| pattern_fits(pattern, step));
        if let Some(pattern) = section.steps.iter().find(|pattern| !steps.is_empty() && !fits(pattern)) {
            return at("steps", format!("`{pattern}` of section `{title}` is no step of this plan"));
        }
    }
    None
}

/// Whether a pattern matches a name. `*` stands for any letters, or for none.
fn pattern_fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| pattern_fits(rest, &name[at..]))
        }),
    }
}

/// Returns the first mistake in published figures: the key inside `[report]`, and what to write.
fn published_problem(plan: &Plan) -> Option<Mistake> {
    match &plan.report.published {
        Some(Published::Figures(published)) => Some(("published", figure_problem(published)?)),
        _ => None,
    }
}

/// Returns a message on the first published figure or finding that cannot be used.
pub(crate) fn figure_problem(published: &PublishedFigures) -> Option<String> {
    let of_steps = published.figures.iter().map(|one| (&one.variant, vec![&one.values]));
    let of_groups = published
        .groups
        .iter()
        .map(|one| (&one.variant, vec![&one.average, &one.median, &one.min, &one.max]));
    let bad = of_steps.chain(of_groups).find_map(|(variant, values)| {
        let bad = |value: &f64| !(value.is_finite() && *value > 0.0);
        let (name, value) = values.into_iter().flatten().find(|(_, value)| bad(value))?;
        Some(format!("the figure {value} of {variant} in {name} is no ratio: write a number above 0"))
    });
    bad.or_else(|| {
        published.findings.iter().find_map(|finding| match finding.than {
            _ if finding.steps.is_empty() => Some(format!("the finding {:?} names no steps", finding.says)),
            Some(than) if !(than.is_finite() && than > 0.0) => Some(format!(
                "the finding {:?} is compared with {than}: write a number above 0",
                finding.says
            )),
            _ => None,
        })
    })
}

/// Names the variants that published figures speak of and that the plan has no variant for. Each
/// name comes once.
pub fn variants_without_figures(plan: &Plan) -> Vec<String> {
    let Some(Published::Figures(published)) = &plan.report.published else { return Vec::new() };
    let of_plan = |name: &str| {
        plan.variants.iter().any(|variant| variant.published.as_deref().unwrap_or(&variant.name) == name)
    };
    let mut names: Vec<String> = Vec::new();
    let pairs = published.figures.iter().flat_map(|one| [&one.base, &one.variant]);
    for name in pairs.chain(published.groups.iter().flat_map(|one| [&one.base, &one.variant])) {
        if !of_plan(name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::parse;

    fn plan(host: &str) -> Plan {
        let text = format!(
            "name = \"p\"\n[host]\n{host}\n[[variant]]\nname = \"a\"\nserver = \"null\"\n\
             [workload.fake]\n"
        );
        parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn shared_cpus_are_a_warning_and_no_error() {
        let found = warnings(&plan("server_cpus = \"0-2\"\nclient_cpus = \"1-3\""));
        insta::assert_snapshot!(found.join("\n"), @"server and client share CPUs 1-2 (host.server_cpus, host.client_cpus): each slows the other down");
        assert!(warnings(&plan("server_cpus = \"0-1\"\nclient_cpus = \"2-3\"")).is_empty());
    }

    #[test]
    fn more_threads_than_client_cpus_are_a_warning() {
        let found = warnings(&plan("client_threads = 4\nclient_cpus = \"1-3\""));
        insta::assert_snapshot!(found.join("\n"), @"host.client_threads is 4, but the client has only 3 CPUs (1-3)");
    }

    #[test]
    fn names_are_safe_components_of_a_path() {
        for good in ["a", "mariadb-10.11.19", "A_1", "x."] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "ä", "a\0"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(is_name(&"a".repeat(64)) && !is_name(&"a".repeat(65)));
    }
}
