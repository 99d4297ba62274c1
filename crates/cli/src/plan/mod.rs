//! What a run needs before it starts: the plan that is asked for, a forecast of its time, the
//! differences that it can detect, its variants, and the parity of their settings.

pub(crate) mod forecast;
pub(crate) mod parity;
pub(crate) mod plan_source;
pub(crate) mod power;
pub(crate) mod prepare;
