//! A macro for options whose defaults are written next to their fields.

/// Declares a struct with a value for each field, which [`Default`] gives it.
#[macro_export]
macro_rules! with_defaults {
    (
        $(#[$about:meta])*
        $vis:vis struct $Name:ident {
            $($(#[$of:meta])* $field_vis:vis $field:ident: $Type:ty = $value:expr,)+
        }
    ) => {
        $(#[$about])*
        $vis struct $Name {
            $($(#[$of])* $field_vis $field: $Type,)+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}
