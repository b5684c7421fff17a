//! What `keep doctor` says of a files worker that it started: what it tried and was refused, and what nothing holds.

use platform::confine::{Axis, Plan, Support};

use super::finding::{Area, Finding, finding};
use crate::gate::worker::Confinement;

const RAISE: &str = "Linux 5.13 or later with filters of system calls, started with landlock among lsm=";

/// First whether it is confined at all, then what was tried, then what is missing.
pub fn findings(worker: &Result<Confinement, String>) -> Vec<Finding> {
    let whole =
        finding(Area::Worker, "confined", "anything but the root's files, by the kernel and not by its own checks");
    let confinement = match worker {
        Ok(confinement) => confinement,
        Err(reason) => {
            let detail = Some(reason.clone());
            return vec![Finding { works: Some(false), detail, raise: Some(RAISE.to_owned()), ..whole }];
        }
    };
    let Confinement { landlock, filter, is_expected, ref tried } = *confinement;
    let plan = Plan::new(Support { landlock, filter, is_expected });
    let is_whole = plan.missing().is_empty();
    let raise = match (is_whole, is_expected) {
        (true, _) => None,
        (false, true) => Some(RAISE.to_owned()),
        (false, false) => Some("Linux: this system has no such means".to_owned()),
    };
    let mut all = vec![Finding { works: Some(is_whole), detail: confinement.means(), raise: raise.clone(), ..whole }];
    for axis in Axis::all() {
        let of_axis: Vec<_> =
            tried.iter().filter(|tried| tried.axis == axis.name() && confinement.covers(tried)).collect();
        let row = finding(Area::Worker, axis.name(), axis.what());
        if !of_axis.is_empty() {
            let works = Some(of_axis.iter().all(|tried| tried.was_refused));
            let what: Vec<&str> = of_axis.iter().map(|tried| tried.what.as_str()).collect();
            let raise = (works == Some(false)).then(|| RAISE.to_owned());
            all.push(Finding { works, detail: Some(format!("tried: {}", what.join(", "))), raise, ..row });
        } else if is_expected && !plan.holds(axis) {
            all.push(Finding { works: Some(false), raise: raise.clone(), ..row });
        }
    }
    all
}
