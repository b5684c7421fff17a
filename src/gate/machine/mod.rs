//! The gate's decisions, pure: calls, answers and time go in, effects come out.

mod types;

pub use types::{Call, Caller, Choice, Effect, Input, Offer, OfferId, Question, QuestionId, Settlement, Ticket};
