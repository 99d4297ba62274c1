//! Macros for two kinds of types: enums whose values have names, and options whose defaults are
//! written next to their fields.

/// Declares an enum with the list `ALL` of its values and a `name` for each value.
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of:meta])* $Value:ident = $name:literal,)+
        }
    ) => {
        $(#[$about])*
        $vis enum $Enum {
            $($(#[$of])* $Value,)+
        }

        impl $Enum {
            /// Every value, in the order in which they are documented.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// Returns the name that the value has in plans, steps and records.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }
    };
}

/// Declares a struct and its [`Default`]. The default value of each field is written after its
/// type.
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
