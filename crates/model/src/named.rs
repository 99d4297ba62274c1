//! A macro for enums whose values have names.

/// An enum with the list `ALL` of its values, and a `name` for each.
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
            /// Every one, in the order in which they are documented.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// Its name in plans, steps and records.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }
    };
}
