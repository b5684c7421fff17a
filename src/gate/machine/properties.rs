//! What holds whatever happens, in whatever order: checked against a plain account of what was said and done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::digest::Digest;
use crate::gate::policy::Tightening;
use crate::gate::tools::Tool;

/// Something to do to a machine; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Act {
    Call {
        connection: u64,
        what: usize,
        content: u8,
    },
    Answer(usize),
    /// An offer of a question that is over, or of none.
    AnswerWith {
        question: u64,
        offer: usize,
    },
    Decline,
    Cancel {
        which: usize,
        timed_out: bool,
    },
    Disconnect(u64),
    Grants(Vec<usize>),
    /// The file holds what was last to be remembered, besides what it held.
    Store,
    Forget,
    Gone,
    Pass(u64),
    /// Time passes, and nobody says so.
    Sleep(u64),
    Wake,
}

/// Some sixty inputs each; `PROPTEST_CASES=2000` makes a million of them.
fn cases() -> u32 {
    8 * ProptestConfig::default().cases
}

const PATHS: [&str; 6] = ["a", "n/a", "n/b", "m/a", "n/*", "n/x/y"];
const GRANTS: [(&str, &str); 7] = [
    ("file", "a"),
    ("file", "n/a"),
    ("file", "n/*"),
    ("file", "m/*"),
    ("memory", "p/*"),
    ("memory", "p/a.md"),
    ("net", "*.example.com"),
];

fn file(path: &str) -> Action {
    Action::file(FilePath::parse(path).expect(path))
}

/// The calls there are. Made once: a name's labels take longer to judge than a step takes.
static CALLS: LazyLock<Vec<(Tool, Vec<Action>)>> = LazyLock::new(|| {
    let note = |path: &str| Action::memory(NotePath::parse(path).expect(path));
    let net = |host: &str| Action::net(Host::parse(host, Some(80)).expect(host));
    let mut calls: Vec<_> = PATHS.iter().map(|path| (Tool::FileWrite, vec![file(path)])).collect();
    calls.extend([
        (Tool::FileMove, vec![file("n/a"), file("m/a")]),
        (Tool::FileMove, vec![file("n/a"), file("n/b")]),
        (Tool::FileMove, vec![file("m/a"), file("n/*")]),
        (Tool::MemoryWrite, vec![note("p/a.md")]),
        (Tool::MemoryWrite, vec![note("b.md")]),
        (Tool::Notify, vec![Action::notify()]),
        (Tool::HttpRead, vec![net("api.example.com")]),
        (Tool::HttpRead, vec![net("example.com")]),
        (Tool::FileWrite, Vec::new()),
    ]);
    calls
});

/// What somebody may have written into the file.
static WRITTEN: LazyLock<Vec<Grant>> =
    LazyLock::new(|| GRANTS.iter().map(|(kind, target)| Grant::parse(kind, target).expect(target)).collect());

fn caller(connection: u64) -> Caller {
    Caller { connection, name: format!("caller {connection}"), unattended: connection == 2 }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..3_u64, any::<usize>(), 0..2_u8)
            .prop_map(|(connection, what, content)| Act::Call { connection, what, content }),
        6 => any::<usize>().prop_map(Act::Answer),
        1 => (0..12_u64, any::<usize>()).prop_map(|(question, offer)| Act::AnswerWith { question, offer }),
        2 => Just(Act::Decline),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, timed_out)| Act::Cancel { which, timed_out }),
        1 => (0..3_u64).prop_map(Act::Disconnect),
        1 => proptest::collection::vec(any::<usize>(), 0..3).prop_map(Act::Grants),
        3 => Just(Act::Store),
        1 => Just(Act::Forget),
        1 => proptest::sample::select(vec![0, 1, 30, 119, 120, 599, 600]).prop_map(Act::Pass),
        1 => proptest::sample::select(vec![1, 60, 120, 600]).prop_map(Act::Sleep),
        1 => Just(Act::Wake),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    (proptest::collection::vec(act(), 1..120), proptest::option::weighted(0.2, any::<usize>())).prop_map(
        |(mut acts, gone)| {
            if let Some(at) = gone {
                acts.insert(at % acts.len(), Act::Gone);
            }
            acts
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let tightening = prop_oneof![
        proptest::sample::select(Recall::ALL.to_vec()).prop_map(Tightening::Ceiling),
        proptest::sample::select(Recall::ALL.to_vec()).prop_map(|ceiling| Tightening::Rule(Ruling::Ask { ceiling })),
        Just(Tightening::Rule(Ruling::Deny)),
    ];
    proptest::collection::vec((proptest::sample::select(Kind::ALL.to_vec()), tightening), 0..3).prop_map(|settings| {
        settings
            .into_iter()
            .fold(Policy::default(), |policy, (kind, by)| policy.clone().tightened(kind, by).unwrap_or(policy))
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    (any::<bool>(), proptest::bool::weighted(0.9), prop_oneof![3 => Just(120_u64), 1 => Just(3600)]).prop_map(
        |(guarded, has_terminal, seconds)| Settings {
            guarded,
            has_terminal,
            ask_timeout: Duration::from_secs(seconds),
        },
    )
}

/// The account: what was said and done, without any of the machine's own bookkeeping.
struct Account {
    machine: Machine,
    policy: Policy,
    settings: Settings,
    now: Moment,
    tickets: u64,
    /// Calls that have neither run nor been denied.
    waiting: BTreeMap<Ticket, Call>,
    disk: BTreeSet<Grant>,
    session: BTreeSet<(Grant, bool)>,
    remember: Vec<Grant>,
    /// Calls whose callers gave up waiting for an open question, and when.
    given_up: Vec<(Call, Moment)>,
    /// Answers of yes that nobody waited for, and until when one may come back for them.
    credits: Vec<(Call, Moment)>,
    open: BTreeSet<QuestionId>,
    settled: BTreeSet<QuestionId>,
    minted: Vec<OfferId>,
    gone: bool,
}

impl Account {
    fn new(policy: Policy, settings: Settings) -> Self {
        let mut next = 0_u128;
        let ids = Box::new(move || {
            next += 1;
            next.to_be_bytes()
        });
        Self {
            machine: Machine::new(policy.clone(), settings, ids),
            policy,
            settings,
            now: Moment::from_nanos(0),
            tickets: 0,
            waiting: BTreeMap::new(),
            disk: BTreeSet::new(),
            session: BTreeSet::new(),
            remember: Vec::new(),
            given_up: Vec::new(),
            credits: Vec::new(),
            open: BTreeSet::new(),
            settled: BTreeSet::new(),
            minted: Vec::new(),
            gone: false,
        }
    }

    fn rule(&self, action: &Action, caller: &Caller) -> Ruling {
        self.policy.rule(action.kind(), caller.unattended)
    }

    fn is_covered(&self, action: &Action, unattended: bool) -> bool {
        let session = self.session.iter().filter(|(_, given)| *given || !unattended).map(|(grant, _)| grant);
        self.disk.iter().chain(session).any(|grant| grant.covers(action))
    }

    /// Whether policy and grants let a call run without anybody being asked.
    fn is_free(&self, call: &Call) -> bool {
        !call.actions.is_empty()
            && call.actions.iter().all(|action| match self.rule(action, &call.caller) {
                Ruling::Allow => true,
                Ruling::Ask { ceiling } => ceiling > Recall::Never && self.is_covered(action, call.caller.unattended),
                Ruling::Deny => false,
            })
    }

    fn is_forbidden(&self, call: &Call) -> bool {
        call.actions.is_empty() || call.actions.iter().any(|action| self.rule(action, &call.caller) == Ruling::Deny)
    }

    fn input(&mut self, act: Act) -> Option<Input> {
        Some(match act {
            Act::Call { connection, what, content } => {
                let (tool, actions) = CALLS[what % CALLS.len()].clone();
                self.tickets += 1;
                let digest = Digest::of(format!("{tool:?} {actions:?} {content}").as_bytes());
                Input::Called(Call {
                    ticket: Ticket(self.tickets),
                    caller: caller(connection),
                    tool,
                    digest,
                    actions,
                    facts: Vec::new(),
                    difference: Vec::new(),
                })
            }
            Act::Answer(which) => {
                let question = self.machine.question()?;
                let offer = question.offers[which % question.offers.len()].id;
                Input::Answered { question: question.id, offer }
            }
            Act::AnswerWith { question, offer } => {
                let strange = OfferId([0xff; 16]);
                let offer = self.minted.get(offer % (self.minted.len() + 1)).copied().unwrap_or(strange);
                Input::Answered { question: QuestionId(question), offer }
            }
            Act::Decline => Input::Declined { question: self.machine.question()?.id },
            Act::Cancel { which, timed_out } => {
                let which = which % self.waiting.len().max(1);
                Input::Cancelled { ticket: *self.waiting.keys().nth(which)?, timed_out }
            }
            Act::Disconnect(connection) => Input::Disconnected { connection },
            Act::Grants(which) => {
                self.disk = which.into_iter().map(|at| WRITTEN[at % WRITTEN.len()].clone()).collect();
                Input::Grants(self.disk.iter().cloned().collect())
            }
            Act::Store => {
                self.disk.extend(self.remember.drain(..));
                Input::Grants(self.disk.iter().cloned().collect())
            }
            Act::Forget => Input::ForgetSession,
            Act::Gone => Input::ApproverGone,
            Act::Pass(seconds) => {
                self.now = self.now + Duration::from_secs(seconds);
                Input::Tick
            }
            Act::Sleep(seconds) => {
                self.now = self.now + Duration::from_secs(seconds);
                return None;
            }
            Act::Wake => {
                self.now = self.now.max(self.machine.wake_at()?);
                Input::Tick
            }
        })
    }

    fn step(&mut self, act: Act) -> Result<(), TestCaseError> {
        let Some(input) = self.input(act) else { return Ok(()) };
        let now = self.now;
        self.credits.retain(|(_, until)| *until > now);
        self.given_up.retain(|(_, at)| *at + REJOIN > now);
        let before = self.machine.question().cloned();
        let mut came_back = false;
        match &input {
            Input::Called(call) => {
                self.waiting.insert(call.ticket, call.clone());
                if let Some(at) = self.credits.iter().position(|(kept, _)| kept.is_same(call)) {
                    self.credits.swap_remove(at);
                    came_back = true;
                } else if let Some(at) = self.given_up.iter().position(|(kept, _)| kept.is_same(call)) {
                    self.given_up.remove(at);
                }
            }
            Input::Cancelled { ticket, timed_out: true } => self.given_up.push((self.waiting[ticket].clone(), now)),
            Input::Disconnected { connection } => {
                self.given_up.retain(|(call, _)| call.caller.connection != *connection);
                self.credits.retain(|(call, _)| call.caller.connection != *connection);
            }
            Input::ForgetSession => self.session.clear(),
            Input::ApproverGone => {
                self.gone = true;
                self.credits.clear();
            }
            _ => {}
        }

        let effects = self.machine.step(input.clone(), now);

        let taken = self.taken(&input, before.as_ref(), &effects)?;
        if let Some((question, offer)) = &taken {
            match offer.recall {
                Recall::Never => {
                    let same = |(call, _): &&(Call, Moment)| call.is_same(&question.call);
                    if let Some((call, at)) = self.given_up.iter().rfind(same) {
                        self.credits.push((call.clone(), *at + REJOIN));
                    }
                }
                Recall::Session => {
                    let unattended = question.call.caller.unattended;
                    self.session.extend(offer.grants.iter().map(|grant| (grant.clone(), unattended)));
                }
                Recall::Always => {}
            }
            self.given_up.retain(|(call, _)| !call.is_same(&question.call));
        }
        let mut over = BTreeSet::new();
        for effect in &effects {
            match effect {
                Effect::Run { ticket, answered: by_answer } => {
                    let call = self.waiting.remove(ticket);
                    prop_assert!(call.is_some(), "{ticket:?} ran, and had been decided before");
                    let call = call.expect("was checked");
                    prop_assert!(!self.is_forbidden(&call), "{call:?} ran against the policy");
                    let answered = taken.as_ref().is_some_and(|(question, _)| question.call.is_same(&call));
                    let kept = came_back && matches!(&input, Input::Called(called) if called.ticket == *ticket);
                    prop_assert!(self.is_free(&call) || answered || kept, "nobody allowed {call:?}");
                    prop_assert!(!by_answer || answered || kept, "nobody was asked about {call:?}");
                }
                Effect::Deny { ticket, action, denial } => {
                    let call = self.waiting.remove(ticket);
                    prop_assert!(call.is_some(), "{ticket:?} was denied, and had been decided before");
                    let call = call.expect("was checked");
                    prop_assert!(call.actions.is_empty() || call.actions.contains(action));
                    prop_assert_eq!(*denial == Denial::Policy, self.is_forbidden(&call), "{:?}", call);
                    let nobody = !self.settings.has_terminal || (call.caller.unattended && !self.settings.guarded);
                    prop_assert!(*denial != Denial::Unattended || nobody, "somebody could have been asked");
                    prop_assert!(*denial != Denial::Gone || self.gone, "the approver is there");
                }
                Effect::Settled { question, .. } => {
                    prop_assert!(self.settled.insert(*question), "{question:?} was settled twice");
                    over.insert(*question);
                }
                Effect::Remember(grants) => {
                    let always = taken.as_ref().filter(|(_, offer)| offer.recall == Recall::Always);
                    prop_assert_eq!(
                        Some(grants),
                        always.map(|(_, offer)| &offer.grants),
                        "what was offered is what is stored"
                    );
                    self.remember.extend(grants.iter().cloned());
                }
                Effect::Audit(_) => {}
            }
        }
        self.check_question(before.as_ref(), &over)?;
        let session: BTreeSet<_> = self.session.iter().map(|(grant, _)| grant.clone()).collect();
        prop_assert_eq!(self.machine.session_grants(), session.into_iter().collect::<Vec<_>>());
        prop_assert!(self.machine.question().is_some() || self.waiting.is_empty(), "calls wait for nothing");
        Ok(())
    }

    /// The offer that the machine says was taken. It was, in time, and one that was taken in time counts.
    fn taken(
        &self,
        input: &Input,
        before: Option<&Question>,
        effects: &[Effect],
    ) -> Result<Option<(Question, Offer)>, TestCaseError> {
        let mut said = effects.iter().filter_map(|effect| match effect {
            Effect::Settled { question, settlement: Settlement::Allowed(choice), .. } => Some((*question, *choice)),
            _ => None,
        });
        let (said, more) = (said.next(), said.next());
        prop_assert_eq!(more, None, "one answer allowed two questions");
        let named = match (input, before) {
            (Input::Answered { question, offer }, Some(before)) if *question == before.id => {
                before.offers.iter().find(|minted| minted.id == *offer).map(|minted| (before, minted))
            }
            _ => None,
        };
        let in_time = named.filter(|(question, _)| question.deadline > self.now);
        let Some((question, offer)) = in_time else {
            prop_assert_eq!(said, None, "nobody took an offer in time");
            return Ok(None);
        };
        let awaited = self.waiting.values().any(|call| call.is_same(&question.call));
        if said.is_none() {
            prop_assert!(!awaited, "an answer was lost");
            return Ok(None);
        }
        prop_assert_eq!(said, Some((question.id, offer.choice)));
        Ok(Some((question.clone(), offer.clone())))
    }

    /// The question on the screen is the one before, unless that is over, and offers no more than it may.
    fn check_question(&mut self, before: Option<&Question>, over: &BTreeSet<QuestionId>) -> Result<(), TestCaseError> {
        let question = self.machine.question();
        if let Some(before) = before.filter(|before| !over.contains(&before.id)) {
            prop_assert_eq!(question.map(|question| question.id), Some(before.id), "another question took its place");
            if self.open.contains(&before.id) {
                prop_assert_eq!(question, Some(before), "the question changed on the screen");
            }
        }
        let Some(question) = question else {
            prop_assert_eq!(self.machine.waiting(), 0);
            return Ok(());
        };
        prop_assert!(!self.settled.contains(&question.id) && question.deadline > self.now && !self.gone);
        prop_assert!(self.machine.wake_at().is_some_and(|at| at > self.now && at <= question.deadline));
        prop_assert!(!self.is_forbidden(&question.call) && question.call.actions.contains(&question.action));
        prop_assert_eq!(
            question.offers.first().map(|offer| (offer.choice, offer.recall)),
            Some((Choice::Once, Recall::Never))
        );
        if self.open.contains(&question.id) {
            return Ok(());
        }
        let named = |action: &Action| [Grant::exact(action), Grant::widened(action)];
        let named: Vec<_> = question.call.actions.iter().flat_map(named).flatten().collect();
        for offer in &question.offers {
            let ceiling = match self.rule(&question.action, &question.call.caller) {
                Ruling::Ask { ceiling } => ceiling,
                other => return Err(TestCaseError::fail(format!("asked about what is {other:?}"))),
            };
            prop_assert!(offer.recall <= ceiling, "{offer:?} is above {ceiling:?}");
            for grant in &offer.grants {
                prop_assert!(named.contains(grant), "{grant} was never asked about");
            }
            self.minted.push(offer.id);
        }
        // A question counts as shown once it was written down; a step that stores something leaves that to the next.
        if self.remember.is_empty() {
            self.open.insert(question.id);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4_000, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn every_call_ends_once_and_runs_only_if_it_may(policy in policy(), settings in settings(), acts in acts()) {
        let mut account = Account::new(policy, settings);
        for act in acts {
            account.step(act)?;
        }
        account.step(Act::Gone)?;
        prop_assert!(account.waiting.is_empty(), "{:?} wait for ever", account.waiting.keys());
        prop_assert!(account.machine.question().is_none() && account.machine.wake_at().is_none());
    }
}
