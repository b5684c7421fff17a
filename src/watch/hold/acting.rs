//! Carrying out what was decided about held opens: the answer first, since somebody waits, then what is written down and said.

use std::time::Duration;

use platform::{Answered, HeldId, Opening, Verdict};

use crate::ask::Key;
use crate::baseline::Snapshot;
use crate::journal::{Asked, Event};
use crate::rules::Mode;
use crate::trust::Wish;
use crate::watch::console::OnScreen;
use crate::watch::inbox::Message;
use crate::watch::lock::Locked;
use crate::watch::machine::{Input as Seeing, Seen};
use crate::watch::report;
use crate::watch::session::Session;
use crate::watch::writers::{Before, told};

use super::passes::Passing;
use super::relief::Late;
use super::words;
use super::{Answer, Decision, Effect, Held, Input, News, Sighted, Standing, Trouble, Why};

impl Session {
    /// Takes news of held opens.
    pub(in crate::watch) fn take_held(&mut self, news: News) {
        let input = match news {
            News::Held(id, opening) => match self.stranger(id, *opening) {
                Some((held, standing)) => Input::Opened { held, standing },
                None => return,
            },
            News::Trouble(trouble) => return self.in_trouble(trouble),
            News::Away(away) => return self.take_away(away),
            News::Gone(id) => Input::Gone(id),
            News::Relieved(id) => Input::Relieved(id),
            News::Vetted(id, trusted) => Input::Vetted { id, trusted },
            News::Crowd(crowd) => {
                self.say(&format!(
                    "keep watch: {} opens more than can be asked about were held at once; they are refused",
                    crowd.ids.len()
                ));
                let one = self.protected(crowd.ids[0], crowd.one);
                Input::NoRoom { ids: crowd.ids, one }
            }
        };
        self.step_held(input);
    }

    fn in_trouble(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Crowded => self.say(
                "keep watch: as many opens are held as there is room for; further ones are refused until some are answered",
            ),
            Trouble::Alone => self.alone(),
            Trouble::Broken => {
                self.end_hold();
                self.is_short = true;
                self.say("keep watch: opens are not held any more, as reading them failed; changes are asked about");
                self.options.limits.push("Opens were not held to the end, as reading them failed.".to_owned());
            }
        }
    }

    /// The guardian is gone: says what is lost by that.
    fn alone(&mut self) {
        let holds = self.parts.hold.is_some();
        let locked = self.lock.as_ref().map(|lock| lock.locks.count()).filter(|locked| *locked != Locked::default());
        self.is_short |= holds || locked.is_some();
        self.say(&words::alone(holds, locked));
        self.options.limits.push(
            "The guardian was gone before the end: from then on nobody answered in the place of a watch that is killed or stopped.".to_owned(),
        );
        if locked.is_some() {
            self.options.limits.push("What was locked when the guardian went could not be unlocked.".to_owned());
        }
    }

    /// The open as the machine takes it; `None` if it is none of a protected file, and has been let.
    fn stranger(&mut self, id: HeldId, opening: Opening) -> Option<(Held, Standing)> {
        let Some(held) = self.protected(id, opening) else {
            self.answer_held(id, Verdict::Allow);
            return None;
        };
        let standing = if self.passes.covers(&held, self.now()) {
            Standing::Covered
        } else if self.is_looked_at(&held) {
            Standing::Vetting
        } else {
            Standing::Stranger
        };
        Some((held, standing))
    }

    /// The protected path that was opened, if it is one whose opens are asked about.
    pub(super) fn protected(&self, id: HeldId, opening: Opening) -> Option<Held> {
        let sight = &self.parts.hold.as_ref()?.sight;
        let Sighted::Protected(place, class) = sight.find(&opening) else { return None };
        let Opening { object, access, by, at, .. } = opening;
        sight.manner.holds(class, access).then_some(Held { id, object, place, class, access, by, at })
    }

    fn is_looked_at(&self, held: &Held) -> bool {
        let (Some(hold), Some(exe)) = (&self.parts.hold, &held.by.program.exe) else { return false };
        let path = self.parts.roots.bytes(&held.place);
        let wish = Wish { exe: exe.clone(), access: held.access, rule: held.class.rule, path };
        hold.vetting.look_at(held.id, &held.by, wish)
    }

    /// A key that counts, for a question about held opens.
    pub(in crate::watch) fn answer_question(&mut self, key: Key, OnScreen { id, version, .. }: OnScreen) {
        let answer = match key {
            Key::Accept => Answer::Allow,
            Key::Reject => Answer::Refuse,
            _ => Answer::Each,
        };
        self.step_held(Input::Answer { answer, question: id, version });
        self.draw();
    }

    /// Feeds the machine and does what comes out.
    pub(in crate::watch) fn step_held(&mut self, input: Input) {
        let now = self.now();
        let effects = self.held.step(input, now);
        let mut late = Late::default();
        for effect in effects {
            match effect {
                Effect::Answer(held, decision) => match self.act_held(&held, decision) {
                    Answered::Done => {}
                    Answered::Relieved => late.add(held, Decision::WhileStopped),
                    Answered::Gone => late.add(held, Decision::Gone),
                },
                Effect::Refuse(id) => {
                    self.answer_held(id, Verdict::Refuse);
                }
                Effect::Decided { held, decision, opens } => {
                    let less = late.of(&held, decision);
                    if opens > less {
                        self.decided_held(&held, decision, opens - less);
                    }
                }
                Effect::Contest(place, access) => {
                    let shown = self.parts.roots.shown(&place);
                    self.parts.console.offer_asking_again();
                    self.say(&words::contested(&shown, access, self.options.contest_limit));
                    self.tally.note(Event::Contested { path: self.parts.roots.stored(&place) });
                }
            }
        }
        for (held, decision, opens) in late.0 {
            self.decided_held(&held, decision, opens);
        }
    }

    /// Answers; what is let write is remembered before.
    fn act_held(&mut self, held: &Held, decision: Decision) -> Answered {
        let now = self.now();
        let why = match decision {
            Decision::Allowed => Some(Why::Answered),
            Decision::Trusted => Some(Why::Trusted),
            _ => None,
        };
        if let Some(why) = why
            && !self.passes.covers(held, now)
        {
            self.passes.add(held, why, now, now + self.options.decision_timeout);
        }
        decision.verdict().map_or(Answered::Done, |verdict| self.answer_held(held.id, verdict))
    }

    fn answer_held(&self, id: HeldId, verdict: Verdict) -> Answered {
        self.parts.hold.as_ref().map_or(Answered::Gone, |hold| hold.answers.answer(id, verdict))
    }

    /// Writes down and says what opens came to.
    fn decided_held(&mut self, held: &Held, decision: Decision, opens: u32) {
        self.note_held(held, decision, opens);
        self.say_held(held, decision, opens);
    }

    /// Writes it down: journal, session log, report.
    pub(super) fn note_held(&mut self, held: &Held, decision: Decision, opens: u32) {
        let Held { place, class, access, by, at, .. } = held;
        let writer = told(by);
        let path = self.parts.roots.stored(place);
        self.log(
            "held",
            place,
            &[
                ("access", access.name().into()),
                ("decision", decision.outcome().name().into()),
                ("opens", opens.into()),
                ("pid", by.program.pid.into()),
            ],
        );
        self.tally.note(Event::Held {
            path,
            rule: class.rule,
            access: *access,
            decision: decision.outcome(),
            opens,
            writer: writer.clone(),
        });
        self.tally.held.push(report::HeldRow {
            path: self.report_path(place),
            rule: class.rule,
            access: *access,
            decision: decision.outcome(),
            opens,
            opened_at: self.wall(*at),
            decided_at: self.parts.clock.wall(),
            writer,
        });
    }

    /// Says it.
    pub(super) fn say_held(&mut self, held: &Held, decision: Decision, opens: u32) {
        let shown = self.parts.roots.shown(&held.place);
        let line = words::decided(&shown, held.access, &held.by, decision, opens);
        match decision {
            // Said once by the journal: a person who trusts a program does not want to hear of it.
            Decision::Trusted => {}
            Decision::AutoRefused | Decision::Gone | Decision::NoRoom => {
                let now = self.now();
                self.parts.console.line_now_and_then(&shown, &line, now);
            }
            _ => self.say(&line),
        }
    }

    /// Refuses what is held, and everything that comes from now on.
    pub(in crate::watch) fn refuse_held(&mut self) {
        if self.parts.hold.is_none() {
            return;
        }
        self.step_held(Input::Stop);
        for message in self.parts.messages.wait(Duration::ZERO, 0) {
            match message {
                Message::Held(news) => self.take_held(news),
                Message::Gate(slate) => self.parts.console.gate_says(*slate),
                // Nothing that is typed or said now changes how this ends.
                _ => {}
            }
        }
    }

    /// Refuses what is still held, and lets go of what holds: before the terminal is given back.
    pub(in crate::watch) fn end_hold(&mut self) {
        self.refuse_held();
        self.parts.hold = None;
    }

    /// Whether the change was let with the open it came by. `true` if it was dealt with, or is waited for.
    pub(in crate::watch) fn is_let(&mut self, seen: &Seen, (_, mark): Before, is_stored: bool) -> bool {
        let Seen { place, class, change, .. } = seen;
        if class.mode != Mode::Restore || !self.passes.has(place) || self.machine.is_open(place) {
            return false;
        }
        let absent = Snapshot::absent();
        let before = self.baseline.get(place).map_or(&absent, |row| &row.snapshot);
        let writer = self.parts.account.writer(place, change.after.id());
        let now = self.now();
        let passing = if self.end.is_some() {
            // Nothing can be waited for any more.
            let why = self.passes.explains(place, before, change, writer.as_ref(), now);
            why.map_or(Passing::Ask, Passing::Take)
        } else {
            self.passes.judge(place, before, change, writer.as_ref(), (now, mark.is_closed))
        };
        match passing {
            Passing::Ask => false,
            Passing::Wait => true,
            Passing::Take(why) if is_stored && self.parts.objects.sync().is_ok() => {
                let asked = match why {
                    Why::Answered => Asked::Held,
                    Why::Trusted => Asked::Trusted,
                };
                self.passes.forget(place);
                self.step(Seeing::Approved(seen.clone(), asked));
                true
            }
            Passing::Take(_) if self.end.is_none() => {
                // What is not stored cannot be taken.
                self.passes.put_off(place, now);
                true
            }
            Passing::Take(_) => false,
        }
    }
}
