//! Makes names of functions comparable between versions and compilers. The name that remains has
//! the class and the function: no arguments, no template arguments, no clones.

/// Ends that compilers give to parts and copies of a function. A number may follow each of them.
const CLONES: [&str; 9] =
    ["isra", "constprop", "part", "cold", "lto_priv", "llvm", "localalias", "actor", "resume"];

/// Where a frame is the kernel's, its recorded name ends with this.
const KERNEL: &str = "_[k]";

/// A function as it is compared: its name, and whether it is the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) is_kernel: bool,
}

impl Function {
    /// Returns the function of a recorded frame.
    pub(super) fn of(frame: &str) -> Self {
        let own = frame.strip_suffix(KERNEL);
        Self { name: comparable(own.unwrap_or(frame)), is_kernel: own.is_some() }
    }

    /// Returns the name as it is shown, which tells the kernel's functions from others.
    pub(super) fn shown(&self) -> String {
        if self.is_kernel { format!("{}{KERNEL}", self.name) } else { self.name.clone() }
    }

    /// Returns whether the frame has no name, because its file has no symbols. The name is then
    /// that of the file in brackets.
    pub(super) fn is_unnamed(&self) -> bool {
        self.name.starts_with('[')
    }
}

/// Returns the comparable name: `foo::bar` for `int foo::bar<int>(char*) [clone .isra.0]`.
fn comparable(name: &str) -> String {
    // These mark the object in which the symbol was found, or the file without symbols.
    if name.starts_with('[') {
        return name.to_owned();
    }
    let name = name.split(" [clone ").next().unwrap_or(name);
    let name = name.split('@').next().filter(|own| !own.is_empty()).unwrap_or(name);
    let name = without_clone(name).replace("(anonymous namespace)", "{anonymous}");
    let name = without_arguments(&name);
    let name = without_templates(name);
    without_return_type(&name).to_owned()
}

/// Cuts off `.isra.0`, `.cold` and the like.
fn without_clone(name: &str) -> &str {
    let is_clone = |part: &str| {
        CLONES.contains(&part) || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut kept = name;
    while let Some((before, part)) = kept.rsplit_once('.') {
        if before.is_empty() || !is_clone(part) {
            break;
        }
        kept = before;
    }
    kept
}

/// Cuts off the list of arguments, and what follows it (`const`).
fn without_arguments(name: &str) -> &str {
    let (mut depth, mut from) = (0_i32, 0);
    if let Some(at) = name.find("operator()") {
        from = at + "operator()".len();
    }
    for (at, letter) in name.char_indices().skip_while(|(at, _)| *at < from) {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth <= 0 && at > 0 => return &name[..at],
            _ => {}
        }
    }
    name
}

/// Leaves out what is in angle brackets. Operators that have such a bracket in their name keep it.
fn without_templates(name: &str) -> String {
    if let Some(at) = name.find("operator") {
        let sign = &name[at + "operator".len()..];
        if sign.starts_with(['<', '>', '-']) {
            let head = without_templates(&name[..at]);
            return format!("{head}operator{}", sign.split(['(', ' ']).next().unwrap_or(sign));
        }
    }
    let (mut kept, mut depth) = (String::new(), 0_u32);
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    if kept.is_empty() { name.to_owned() } else { kept }
}

/// Cuts off the return type, which names of template functions begin with.
fn without_return_type(name: &str) -> &str {
    let name = name.trim();
    let (head, tail) = name.find("operator").map_or((name, ""), |at| (&name[..at], &name[at..]));
    let start = head.rfind(' ').map_or(0, |at| at + 1);
    if tail.is_empty() { &name[start..] } else { &name[start.min(name.len() - tail.len())..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_same_function_are_the_same_whatever_made_them() {
        for (name, expected) in [
            ("row_search_mvcc", "row_search_mvcc"),
            ("row_search_mvcc(unsigned char*, page_cur_mode_t, row_prebuilt_t*, unsigned long) [clone .cold]", "row_search_mvcc"),
            ("rec_get_offsets_func.constprop.0", "rec_get_offsets_func"),
            ("buf_page_get_gen(page_id_t, unsigned long, rw_lock_type_t)", "buf_page_get_gen"),
            ("btr_cur_t::search_leaf(dtuple_t const*, mtr_t*) const", "btr_cur_t::search_leaf"),
            ("fold.part.12.isra.3", "fold"),
            ("void std::__introsort_loop<int*, long>(int*, int*, long)", "std::__introsort_loop"),
            ("(anonymous namespace)::Reader::next()", "{anonymous}::Reader::next"),
            ("std::function<void (int)>::operator()(int) const", "std::function::operator()"),
            ("bool operator< <char>(a const&, a const&)", "operator<"),
            ("operator new(unsigned long)", "operator new"),
            ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
            ("memcpy@plt", "memcpy"),
            ("__memmove_avx_unaligned_erms", "__memmove_avx_unaligned_erms"),
            ("[mariadbd]", "[mariadbd]"),
            ("core::ptr::drop_in_place.llvm.123", "core::ptr::drop_in_place"),
        ] {
            assert_eq!(comparable(name), expected, "{name}");
        }
    }

    #[test]
    fn a_kernel_function_is_another_one_than_the_servers_of_the_same_name() {
        assert_ne!(Function::of("memcpy_[k]"), Function::of("memcpy"));
        let kernel = Function::of("schedule_[k]");
        assert_eq!((kernel.name.as_str(), kernel.shown().as_str()), ("schedule", "schedule_[k]"));
    }
}
