//! What the machine does, case by case.

use std::time::Duration;

use super::*;
use crate::digest::Digest;
use crate::gate::policy::Tightening;
use crate::gate::tools::Tool;

const CHAT: u64 = 1;
const SETTINGS: Settings = Settings { ask_timeout: Duration::from_secs(120), guarded: false, has_terminal: true };

struct Bench {
    machine: Machine,
    now: Moment,
    tickets: u64,
}

impl Bench {
    fn new() -> Self {
        Self::with(Policy::default(), SETTINGS)
    }

    fn with(policy: Policy, settings: Settings) -> Self {
        let mut next = 0_u128;
        let ids = Box::new(move || {
            next += 1;
            next.to_be_bytes()
        });
        Self { machine: Machine::new(policy, settings, ids), now: Moment::from_nanos(1), tickets: 0 }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.machine.step(input, self.now)
    }

    fn pass(&mut self, seconds: u64) -> Vec<Effect> {
        self.now = self.now + Duration::from_secs(seconds);
        self.step(Input::Tick)
    }

    /// A call by a chat that writes these paths; `content` is what tells it from others.
    fn call(&mut self, content: &str, paths: &[&str]) -> (Ticket, Vec<Effect>) {
        self.call_of(chat(), content, paths)
    }

    fn call_of(&mut self, caller: Caller, content: &str, paths: &[&str]) -> (Ticket, Vec<Effect>) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let call = Call {
            ticket,
            caller,
            tool: if paths.len() > 1 { Tool::FileMove } else { Tool::FileWrite },
            digest: Digest::of(format!("{content} {paths:?}").as_bytes()),
            actions: paths.iter().map(|path| file(path)).collect(),
            facts: vec!["create, 5 bytes".to_owned()],
            difference: Vec::new(),
        };
        (ticket, self.step(Input::Called(call)))
    }

    fn answer(&mut self, choice: Choice) -> Vec<Effect> {
        let question = self.machine.question().expect("a question");
        let offer = question.offers.iter().find(|offer| offer.choice == choice).expect("is offered");
        let input = Input::Answered { question: question.id, offer: offer.id };
        self.step(input)
    }

    fn decline(&mut self) -> Vec<Effect> {
        let question = self.machine.question().expect("a question").id;
        self.step(Input::Declined { question })
    }

    fn asked(&self) -> Option<String> {
        self.machine.question().map(|question| question.action.to_string())
    }
}

fn chat() -> Caller {
    Caller { connection: CHAT, name: "agent".to_owned(), unattended: false }
}

fn run() -> Caller {
    Caller { connection: 2, name: "six o'clock".to_owned(), unattended: true }
}

fn file(path: &str) -> Action {
    Action::file(FilePath::parse(path).expect(path))
}

fn grants(targets: &[&str]) -> Vec<Grant> {
    targets.iter().map(|target| Grant::parse("file", target).expect(target)).collect()
}

fn runs(effects: &[Effect]) -> Vec<Ticket> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Run { ticket, .. } = effect { Some(*ticket) } else { None })
        .collect()
}

fn denials(effects: &[Effect]) -> Vec<(Ticket, Denial)> {
    let denial = |effect: &Effect| match effect {
        Effect::Deny { ticket, denial, .. } => Some((*ticket, *denial)),
        _ => None,
    };
    effects.iter().filter_map(denial).collect()
}

fn settled(effects: &[Effect]) -> Vec<Settlement> {
    let settlement = |effect: &Effect| match effect {
        Effect::Settled { settlement, .. } => Some(*settlement),
        _ => None,
    };
    effects.iter().filter_map(settlement).collect()
}

/// The audit as short words: `asked 0`, `granted session file a`.
fn audit(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Audit(AuditEvent::Asked { question, .. }) => Some(format!("asked {question}")),
        Effect::Audit(AuditEvent::Answered { question, answer, .. }) => Some(format!("answered {question} {answer}")),
        Effect::Audit(AuditEvent::Allowed { by, .. }) => Some(format!("allowed {by}")),
        Effect::Audit(AuditEvent::Denied { action, reason, .. }) => Some(format!("denied {} {reason}", action.target)),
        Effect::Audit(AuditEvent::Granted { grant, recall }) => Some(format!("granted {recall} {}", grant.target)),
        Effect::Audit(AuditEvent::Revoked { grant, recall }) => Some(format!("revoked {recall} {}", grant.target)),
        _ => None,
    };
    effects.iter().filter_map(word).collect()
}

#[test]
fn a_policys_denial_beats_every_grant() {
    let policy = Policy::default().tightened(Kind::File, Tightening::Rule(Ruling::Deny)).expect("stricter");
    let mut bench = Bench::with(policy, SETTINGS);
    bench.step(Input::Grants(grants(&["a", "n/*"])));
    let (ticket, effects) = bench.call("x", &["a"]);
    assert_eq!(denials(&effects), [(ticket, Denial::Policy)]);
    assert_eq!(audit(&effects), ["denied a policy"]);
    assert_eq!(bench.asked(), None);
}

#[test]
fn what_the_policy_allows_and_what_a_grant_covers_runs_without_a_question() {
    let mut bench = Bench::new();
    bench.step(Input::Grants(grants(&["n/*"])));
    let (ticket, effects) = bench.call("x", &["n/a"]);
    assert_eq!((runs(&effects), audit(&effects)), (vec![ticket], vec!["allowed grant".to_owned()]));
    let mut call = bench.call("x", &["m/a"]).1;
    assert!(runs(&call).is_empty());
    bench.decline();
    bench.tickets += 1;
    let notify = Call {
        ticket: Ticket(bench.tickets),
        caller: run(),
        tool: Tool::Notify,
        digest: Digest::of(b"hello"),
        actions: vec![Action::notify()],
        facts: Vec::new(),
        difference: Vec::new(),
    };
    call = bench.step(Input::Called(notify));
    assert_eq!((runs(&call).len(), audit(&call)), (1, vec!["allowed policy".to_owned()]));
}

#[test]
fn under_a_ceiling_of_never_grants_are_not_looked_at() {
    let policy = Policy::default().tightened(Kind::File, Tightening::Ceiling(Recall::Never)).expect("stricter");
    let mut bench = Bench::with(policy, SETTINGS);
    bench.step(Input::Grants(grants(&["n/a", "n/*"])));
    for _ in 0..2 {
        let (ticket, effects) = bench.call("x", &["n/a"]);
        assert!(runs(&effects).is_empty());
        let offers = &bench.machine.question().expect("a question").offers;
        assert_eq!(offers.iter().map(|offer| offer.choice).collect::<Vec<_>>(), [Choice::Once]);
        assert_eq!(runs(&bench.answer(Choice::Once)), [ticket]);
    }
}

#[test]
fn a_gated_call_that_names_no_target_does_not_run() {
    let mut bench = Bench::new();
    let (ticket, effects) = bench.call("x", &[]);
    assert_eq!(denials(&effects), [(ticket, Denial::Policy)]);
}

#[test]
fn where_nobody_can_be_asked_a_fresh_ask_is_denied_at_once() {
    let strict = Settings { has_terminal: false, guarded: true, ..SETTINGS };
    let mut bench = Bench::with(Policy::default(), strict);
    bench.step(Input::Grants(grants(&["a"])));
    for caller in [chat(), run()] {
        let (ticket, effects) = bench.call_of(caller.clone(), "x", &["b"]);
        assert_eq!(denials(&effects), [(ticket, Denial::Unattended)]);
        let (ticket, effects) = bench.call_of(caller, "x", &["a"]);
        assert_eq!(runs(&effects), [ticket]);
    }
    let mut bench = Bench::new();
    assert_eq!(denials(&bench.call_of(run(), "x", &["b"]).1).len(), 1);
    let mut bench = Bench::with(Policy::default(), Settings { guarded: true, ..SETTINGS });
    let (ticket, _) = bench.call_of(run(), "x", &["b"]);
    assert_eq!(runs(&bench.answer(Choice::Once)), [ticket]);
}

#[test]
fn once_is_for_one_call_and_grants_nothing() {
    let mut bench = Bench::new();
    let (first, effects) = bench.call("x", &["a"]);
    assert_eq!(audit(&effects), ["asked 0"]);
    let effects = bench.answer(Choice::Once);
    assert_eq!((runs(&effects), audit(&effects)), (vec![first], vec!["answered 0 once".to_owned()]));
    assert_eq!(settled(&effects), [Settlement::Allowed(Choice::Once)]);
    bench.call("x", &["a"]);
    assert_eq!(bench.asked().as_deref(), Some("file a"));
    assert!(bench.machine.session_grants().is_empty());
}

#[test]
fn a_session_grant_holds_until_it_is_forgotten() {
    let mut bench = Bench::new();
    bench.call("x", &["n/a"]);
    let effects = bench.answer(Choice::WidenSession);
    assert_eq!(audit(&effects), ["answered 0 widen session", "granted session n/*"]);
    assert_eq!(bench.machine.session_grants(), grants(&["n/*"]));
    assert_eq!(runs(&bench.call("y", &["n/b"]).1).len(), 1);
    assert_eq!(audit(&bench.step(Input::ForgetSession)), ["revoked session n/*"]);
    bench.call("y", &["n/b"]);
    assert_eq!(bench.asked().as_deref(), Some("file n/b"));
}

#[test]
fn what_a_person_granted_a_chat_does_not_arm_a_run_that_nobody_watches() {
    let mut bench = Bench::with(Policy::default(), Settings { guarded: true, ..SETTINGS });
    bench.call("x", &["a"]);
    bench.answer(Choice::Session);
    bench.call_of(run(), "x", &["a"]);
    assert_eq!(bench.asked().as_deref(), Some("file a"));
    bench.answer(Choice::Session);
    assert_eq!(runs(&bench.call_of(run(), "y", &["a"]).1).len(), 1);
    assert_eq!(bench.machine.session_grants(), grants(&["a"]));
}

#[test]
fn always_is_stored_first_and_holds_when_the_file_says_so() {
    let mut bench = Bench::new();
    bench.step(Input::Grants(Vec::new()));
    let (first, _) = bench.call("x", &["a"]);
    let (second, _) = bench.call("y", &["a"]);
    let effects = bench.answer(Choice::Always);
    assert!(effects.contains(&Effect::Remember(grants(&["a"]))));
    assert_eq!(runs(&effects), [first]);
    assert_eq!(audit(&effects), ["answered 0 always"], "the next question is not put before the file was written");
    let effects = bench.step(Input::Grants(grants(&["a"])));
    assert_eq!((runs(&effects), settled(&effects)), (vec![second], vec![Settlement::Covered]));
    assert_eq!(audit(&effects), ["granted always a", "allowed grant"]);
    assert_eq!(audit(&bench.step(Input::Grants(Vec::new()))), ["revoked always a"]);
}

#[test]
fn a_grant_that_could_not_be_stored_does_not_hold() {
    let mut bench = Bench::new();
    bench.call("x", &["a"]);
    bench.call("y", &["a"]);
    bench.answer(Choice::Always);
    assert_eq!(audit(&bench.step(Input::Grants(Vec::new()))), ["asked 1"]);
    assert_eq!(bench.asked().as_deref(), Some("file a"));
}

#[test]
fn the_first_reading_of_the_file_is_no_change() {
    let mut bench = Bench::new();
    assert_eq!(audit(&bench.step(Input::Grants(grants(&["a"])))), Vec::<String>::new());
    assert_eq!(audit(&bench.step(Input::Grants(grants(&["b"])))), ["granted always b", "revoked always a"]);
}

#[test]
fn an_offer_that_was_not_minted_for_the_question_is_a_no() {
    let mut bench = Bench::new();
    bench.call("x", &["a"]);
    let old = bench.machine.question().expect("a question").offers[0].id;
    bench.decline();
    let (ticket, _) = bench.call("x", &["a"]);
    let question = bench.machine.question().expect("a question").id;
    let effects = bench.step(Input::Answered { question, offer: old });
    assert_eq!(denials(&effects), [(ticket, Denial::Declined)]);
    assert_eq!(audit(&effects), ["answered 1 no", "denied a declined"]);
}

#[test]
fn a_new_question_never_replaces_the_one_on_the_screen() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    let (second, effects) = bench.call("y", &["b"]);
    assert_eq!((effects, bench.machine.waiting()), (vec![], 1));
    assert_eq!(bench.asked().as_deref(), Some("file a"));
    let effects = bench.decline();
    assert_eq!(denials(&effects), [(first, Denial::Declined)]);
    assert_eq!(audit(&effects), ["answered 0 no", "denied a declined", "asked 1"]);
    // The key was for the first.
    assert!(bench.step(Input::Declined { question: QuestionId(0) }).is_empty());
    assert_eq!(runs(&bench.answer(Choice::Once)), [second]);
}

#[test]
fn a_question_that_is_not_on_the_screen_cannot_be_answered() {
    let mut bench = Bench::new();
    bench.call("x", &["a"]);
    bench.call("y", &["b"]);
    let offer = bench.machine.question().expect("a question").offers[0].id;
    for question in [QuestionId(1), QuestionId(7)] {
        assert!(bench.step(Input::Answered { question, offer }).is_empty());
        assert!(bench.step(Input::Declined { question }).is_empty());
    }
    assert_eq!(bench.machine.waiting(), 1);
}

#[test]
fn the_same_call_shares_a_question_and_another_content_does_not() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("same", &["a"]);
    let (second, _) = bench.call("same", &["a"]);
    let (third, _) = bench.call("harmful", &["a"]);
    let other = Caller { connection: 9, ..chat() };
    let (fourth, _) = bench.call_of(other, "same", &["a"]);
    assert_eq!(bench.machine.waiting(), 2);
    assert_eq!(runs(&bench.answer(Choice::Once)), [first, second]);
    assert_eq!(denials(&bench.decline()), [(fourth, Denial::Declined)]);
    assert_eq!(denials(&bench.decline()), [(third, Denial::Declined)]);
}

#[test]
fn a_new_grant_settles_what_waits_and_what_is_on_the_screen() {
    let mut bench = Bench::new();
    let tickets: Vec<_> = ["n/1", "n/2", "n/3"].into_iter().map(|path| bench.call("x", &[path]).0).collect();
    bench.call("x", &["other/4"]);
    let effects = bench.answer(Choice::WidenSession);
    assert_eq!(runs(&effects), tickets);
    assert_eq!(settled(&effects)[1..], [Settlement::Covered, Settlement::Covered]);
    assert_eq!(bench.asked().as_deref(), Some("file other/4"));
    let effects = bench.step(Input::Grants(grants(&["other/*"])));
    assert_eq!((runs(&effects).len(), settled(&effects)), (1, vec![Settlement::Covered]));
    assert_eq!(bench.asked(), None);
}

#[test]
fn both_ends_of_a_move_are_checked_in_one_question() {
    let mut bench = Bench::new();
    bench.step(Input::Grants(grants(&["inbox/*"])));
    bench.call("x", &["private/plan", "inbox/plan"]);
    assert_eq!(bench.asked().as_deref(), Some("file private/plan"));
    let always = bench.machine.question().expect("a question").offers[2].clone();
    assert_eq!((always.choice, always.grants), (Choice::Always, grants(&["private/plan"])));
    bench.decline();
    bench.step(Input::Grants(grants(&["private/*"])));
    bench.call("x", &["private/plan", "inbox/plan"]);
    assert_eq!(bench.asked().as_deref(), Some("file inbox/plan"));
    bench.decline();
    bench.step(Input::Grants(Vec::new()));
    let (ticket, _) = bench.call("x", &["private/plan", "inbox/plan"]);
    assert_eq!(runs(&bench.answer(Choice::Session)), [ticket]);
    assert_eq!(bench.machine.session_grants(), grants(&["inbox/plan", "private/plan"]));
    assert_eq!(runs(&bench.call("y", &["private/plan", "inbox/plan"]).1).len(), 1);
}

#[test]
fn a_waiting_move_is_asked_about_the_end_that_is_not_covered_by_then() {
    let mut bench = Bench::new();
    bench.call("x", &["first"]);
    bench.call("x", &["private/plan", "inbox/plan"]);
    bench.step(Input::Grants(grants(&["private/*"])));
    bench.decline();
    let question = bench.machine.question().expect("a question");
    assert_eq!(question.action, file("inbox/plan"));
    assert_eq!(question.offers[1].grants, grants(&["inbox/plan"]));
}

#[test]
fn the_question_on_the_screen_stays_as_it_is_shown() {
    let mut bench = Bench::new();
    let (ticket, _) = bench.call("x", &["private/plan", "inbox/plan"]);
    let shown = bench.machine.question().cloned();
    bench.step(Input::Grants(grants(&["private/*"])));
    assert_eq!(bench.machine.question().cloned(), shown);
    assert_eq!(runs(&bench.answer(Choice::Once)), [ticket]);
}

#[test]
fn an_answer_at_the_deadline_is_too_late() {
    let mut bench = Bench::new();
    let (ticket, _) = bench.call("x", &["a"]);
    bench.now = bench.machine.wake_at().expect("a deadline");
    let effects = bench.answer(Choice::Always);
    assert_eq!(denials(&effects), [(ticket, Denial::Timeout)]);
    assert_eq!(settled(&effects), [Settlement::Denied(Denial::Timeout)]);
    assert_eq!((bench.asked(), bench.machine.wake_at()), (None, None));
}

#[test]
fn a_question_waits_from_the_call_on_wherever_it_stands() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    bench.pass(100);
    let (second, _) = bench.call("y", &["b"]);
    assert_eq!(denials(&bench.pass(20)), [(first, Denial::Timeout)]);
    assert_eq!(bench.asked().as_deref(), Some("file b"));
    assert!(denials(&bench.pass(99)).is_empty());
    assert_eq!(denials(&bench.pass(1)), [(second, Denial::Timeout)]);
}

#[test]
fn a_withdrawn_call_cannot_be_approved() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    let question = bench.machine.question().cloned().expect("a question");
    let effects = bench.step(Input::Cancelled { ticket: first, timed_out: false });
    assert_eq!(denials(&effects), [(first, Denial::Cancelled)]);
    assert_eq!(settled(&effects), [Settlement::Denied(Denial::Cancelled)]);
    assert!(bench.step(Input::Answered { question: question.id, offer: question.offers[0].id }).is_empty());
    assert!(bench.step(Input::Cancelled { ticket: first, timed_out: true }).is_empty());
}

#[test]
fn withdrawing_one_of_two_leaves_the_other_waiting() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    let (second, _) = bench.call("x", &["a"]);
    let effects = bench.step(Input::Cancelled { ticket: first, timed_out: false });
    assert_eq!((denials(&effects).len(), settled(&effects).len()), (1, 0));
    assert_eq!(runs(&bench.answer(Choice::Once)), [second]);
}

#[test]
fn a_call_that_comes_again_joins_its_open_question() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    let effects = bench.step(Input::Cancelled { ticket: first, timed_out: true });
    assert_eq!((denials(&effects), settled(&effects)), (vec![(first, Denial::Cancelled)], vec![]));
    bench.pass(30);
    let (second, effects) = bench.call("x", &["a"]);
    assert_eq!((effects, bench.machine.waiting()), (vec![], 0));
    assert_eq!(runs(&bench.answer(Choice::Once)), [second]);
    bench.call("x", &["a"]);
    assert_eq!(bench.asked().as_deref(), Some("file a"), "the answer was used");
}

#[test]
fn a_call_that_comes_again_takes_its_answer_once() {
    for (choice, verdict) in [(Some(Choice::Once), "allowed answer"), (None, "denied a declined")] {
        let mut bench = Bench::new();
        let (first, _) = bench.call("x", &["a"]);
        bench.step(Input::Cancelled { ticket: first, timed_out: true });
        let effects = match choice {
            Some(choice) => bench.answer(choice),
            None => bench.decline(),
        };
        assert_eq!((runs(&effects), denials(&effects)), (vec![], vec![]));
        let (other, _) = bench.call("other content", &["a"]);
        assert_eq!(denials(&bench.decline()), [(other, Denial::Declined)]);
        bench.call_of(Caller { connection: 9, ..chat() }, "x", &["a"]);
        assert_eq!(bench.asked().as_deref(), Some("file a"), "another caller");
        bench.decline();
        bench.pass(590);
        assert_eq!(audit(&bench.call("x", &["a"]).1), [verdict]);
        bench.call("x", &["a"]);
        assert_eq!(bench.asked().as_deref(), Some("file a"));
    }
}

#[test]
fn an_answer_nobody_came_back_for_is_void_after_ten_minutes() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: first, timed_out: true });
    bench.pass(60);
    bench.answer(Choice::Once);
    assert_eq!(bench.machine.wake_at(), Some(Moment::from_nanos(1) + REJOIN));
    bench.pass(540);
    assert_eq!(bench.machine.wake_at(), None);
    assert!(runs(&bench.call("x", &["a"]).1).is_empty());
}

#[test]
fn a_question_nobody_waits_for_ends_with_the_time_to_come_again() {
    let mut bench = Bench::with(Policy::default(), Settings { ask_timeout: Duration::from_secs(3600), ..SETTINGS });
    let (first, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: first, timed_out: true });
    assert_eq!(bench.machine.wake_at(), Some(bench.now + REJOIN));
    assert_eq!(settled(&bench.pass(600)), [Settlement::Denied(Denial::Cancelled)]);
}

#[test]
fn a_revoked_grant_leaves_no_answer_behind() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: first, timed_out: true });
    bench.answer(Choice::Session);
    bench.step(Input::ForgetSession);
    assert!(runs(&bench.call("x", &["a"]).1).is_empty());
    assert_eq!(bench.asked().as_deref(), Some("file a"));
}

#[test]
fn an_answer_that_a_grant_made_needless_is_not_kept() {
    let mut bench = Bench::new();
    let (first, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: first, timed_out: true });
    bench.answer(Choice::Once);
    bench.step(Input::Grants(grants(&["a"])));
    assert_eq!(audit(&bench.call("x", &["a"]).1), ["allowed grant"]);
    bench.step(Input::Grants(Vec::new()));
    assert!(runs(&bench.call("x", &["a"]).1).is_empty());
}

#[test]
fn a_caller_that_goes_away_takes_its_questions_and_answers_with_it() {
    let mut bench = Bench::new();
    let (given_up, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: given_up, timed_out: true });
    bench.answer(Choice::Once);
    let (first, _) = bench.call("y", &["b"]);
    let (other, _) = bench.call_of(Caller { connection: 9, ..chat() }, "y", &["b"]);
    let effects = bench.step(Input::Disconnected { connection: CHAT });
    assert_eq!(denials(&effects), [(first, Denial::Cancelled)]);
    assert_eq!(runs(&bench.answer(Choice::Once)), [other]);
    assert!(runs(&bench.call("x", &["a"]).1).is_empty());
}

#[test]
fn without_its_approver_the_gate_denies_what_waits_and_what_comes() {
    let mut bench = Bench::new();
    bench.step(Input::Grants(grants(&["g"])));
    let (given_up, _) = bench.call("x", &["a"]);
    bench.step(Input::Cancelled { ticket: given_up, timed_out: true });
    bench.answer(Choice::Once);
    let (first, _) = bench.call("y", &["b"]);
    let (second, _) = bench.call("z", &["c"]);
    let effects = bench.step(Input::ApproverGone);
    assert_eq!(denials(&effects), [(first, Denial::Gone), (second, Denial::Gone)]);
    assert_eq!(settled(&effects), [Settlement::Denied(Denial::Gone); 2]);
    let (third, effects) = bench.call("x", &["a"]);
    assert_eq!(denials(&effects), [(third, Denial::Gone)]);
    assert_eq!(runs(&bench.call("x", &["g"]).1).len(), 1);
}

#[test]
fn a_thousand_calls_wait_in_order_and_one_grant_settles_them() {
    let mut bench = Bench::new();
    let tickets: Vec<_> = (0..1000).map(|number| bench.call("x", &[format!("n/{number}").as_str()]).0).collect();
    assert_eq!(bench.machine.waiting(), 999);
    assert_eq!(bench.asked().as_deref(), Some("file n/0"));
    assert_eq!(runs(&bench.answer(Choice::WidenSession)), tickets);
    let same: Vec<_> = (0..1000).map(|_| bench.call("x", &["m"]).0).collect();
    assert_eq!((bench.machine.waiting(), runs(&bench.answer(Choice::Once))), (0, same));
}

#[test]
fn a_caller_with_a_thousand_calls_keeps_no_other_from_being_seen() {
    let mut bench = Bench::new();
    (0..1000).for_each(|number| drop(bench.call("x", &[format!("a{number}").as_str()])));
    let other = || Caller { connection: 9, ..chat() };
    bench.call_of(other(), "x", &["b0"]);
    bench.call_of(other(), "x", &["b1"]);
    let seen: Vec<_> = (0..6)
        .map(|_| {
            let asked = bench.asked().expect("a question");
            bench.decline();
            asked
        })
        .collect();
    assert_eq!(seen, ["file a0", "file b0", "file a1", "file b1", "file a2", "file a3"]);
}

#[test]
fn whoever_gives_up_over_and_over_leaves_few_questions_behind() {
    let mut bench = Bench::new();
    let give_up = |bench: &mut Bench, caller: Caller, number: usize| {
        let (ticket, _) = bench.call_of(caller, "x", &[format!("a{number}").as_str()]);
        bench.step(Input::Cancelled { ticket, timed_out: true })
    };
    (0..MOST_LEFT).for_each(|number| drop(give_up(&mut bench, chat(), number)));
    assert_eq!(bench.machine.waiting() + 1, MOST_LEFT);
    let one_more = give_up(&mut bench, chat(), MOST_LEFT);
    assert_eq!(settled(&one_more), [Settlement::Denied(Denial::Cancelled)]);
    give_up(&mut bench, Caller { connection: 9, ..chat() }, 0);
    assert_eq!(bench.machine.waiting(), MOST_LEFT, "another caller has its own");
    let (again, _) = bench.call("x", &["a1"]);
    bench.decline();
    bench.decline();
    assert_eq!(runs(&bench.answer(Choice::Once)), [again], "one that was left is found again");
    give_up(&mut bench, chat(), MOST_LEFT);
    assert_eq!(bench.machine.waiting() + 1, MOST_LEFT - 1, "there is room again");
}
