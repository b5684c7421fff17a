//! What `keep doctor` says of a files worker that it started: what it tried and was refused, and what nothing holds.

use platform::confine::Axis;

use super::finding::{Area, Finding, finding};
use crate::gate::worker::Confinement;

/// What would raise the confinement of a worker, where it is Seatbelt's and elsewhere.
pub fn raise(is_seatbelt: bool) -> &'static str {
    if is_seatbelt {
        "start keep outside of any other sandbox"
    } else {
        "Linux 5.13 or later with filters of system calls, started with landlock among lsm="
    }
}

/// What no means of its system holds: there is nothing to be raised, and nothing was promised.
const BEYOND_SEATBELT: &str = "Linux: Seatbelt has nothing for it";

/// First whether it is confined at all, then what was tried, then what is missing.
pub fn findings(worker: &Result<Confinement, String>, name: &str) -> Vec<Finding> {
    let whole =
        finding(Area::Worker, "confined", "anything but the root's files, by the kernel and not by its own checks");
    let confinement = match worker {
        Ok(confinement) => confinement,
        Err(reason) => {
            let detail = Some(reason.clone());
            let raise = Some(raise(name == "seatbelt").to_owned());
            return vec![Finding { works: Some(false), detail, raise, ..whole }];
        }
    };
    let Confinement { is_expected, seatbelt, ref tried, .. } = *confinement;
    let plan = confinement.plan();
    let is_whole = is_expected && plan.is_whole();
    let said = |text: &str| Some(text.to_owned());
    let raised = match (is_whole, is_expected) {
        (true, _) => None,
        (false, true) => said(raise(name == "seatbelt")),
        (false, false) => said("Linux: this system has no such means"),
    };
    let mut all = vec![Finding { works: Some(is_whole), detail: confinement.means(), raise: raised.clone(), ..whole }];
    for axis in Axis::all() {
        let of_axis: Vec<_> =
            tried.iter().filter(|tried| tried.axis == axis.name() && confinement.covers(tried)).collect();
        let row = finding(Area::Worker, axis.name(), axis.what());
        if !of_axis.is_empty() {
            let works = Some(of_axis.iter().all(|tried| tried.was_refused));
            let what: Vec<&str> = of_axis.iter().map(|tried| tried.what.as_str()).collect();
            let raise = if works == Some(false) { said(raise(seatbelt)) } else { None };
            all.push(Finding { works, detail: Some(format!("tried: {}", what.join(", "))), raise, ..row });
        } else if is_expected && !plan.holds(axis) {
            let raise = raised.clone().or_else(|| said(BEYOND_SEATBELT));
            all.push(Finding { works: Some(false), raise, ..row });
        }
    }
    all
}
