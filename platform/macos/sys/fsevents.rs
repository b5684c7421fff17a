//! FSEvents.h: streams of rows, received on a dispatch queue.
//!
//! The bindings are generated from Apple's header and `unsafe` throughout; here each call has one function.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use dispatch2::{DispatchQueue, DispatchQueueAttr, DispatchRetained};
use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_core_services as cs;

use crate::clock::{Clock, SystemClock};
use crate::event::RootId;
use crate::fsevents::{Batch, Flags, Inbox, Row};

/// Keys of a row's dictionary: `kFSEventStreamEventExtendedDataPathKey`, `kFSEventStreamEventExtendedFileIDKey`.
const PATH_KEY: &str = "path";
const FILE_KEY: &str = "fileID";

const FLAGS: u32 = cs::kFSEventStreamCreateFlagUseCFTypes
    | cs::kFSEventStreamCreateFlagNoDefer
    | cs::kFSEventStreamCreateFlagWatchRoot
    | cs::kFSEventStreamCreateFlagFileEvents
    | cs::kFSEventStreamCreateFlagUseExtendedData;

/// No row is held back to be merged with later ones.
const LATENCY: f64 = 0.0;

/// What a stream's callback gets.
struct Receiver {
    root: RootId,
    inbox: Arc<Inbox>,
}

/// One root's stream; dropping it ends it, and no row comes after.
#[derive(Debug)]
pub(crate) struct Stream {
    stream: cs::FSEventStreamRef,
    queue: DispatchRetained<DispatchQueue>,
    started: bool,
}

// SAFETY: a stream may be used by any thread, one at a time (File System Events Programming Guide); nothing here is shared
// without a lock.
unsafe impl Send for Stream {}

/// The number of the last row the system has made.
pub(crate) fn current_event_id() -> u64 {
    // SAFETY: nothing is passed.
    unsafe { cs::FSEventsGetCurrentEventId() }
}

impl Stream {
    /// Starts a stream of what happens below `path` after row `since`. `None` if the system refuses.
    pub(crate) fn start(path: &str, since: u64, root: RootId, inbox: Arc<Inbox>) -> Option<Self> {
        let queue = DispatchQueue::new("keepwatch.fsevents", DispatchQueueAttr::SERIAL);
        let mut stream = Self { stream: create(path, since, Receiver { root, inbox })?, queue, started: false };
        stream.schedule();
        stream.started = stream.begin();
        // What was not started is released all the same, by its drop.
        stream.started.then_some(stream)
    }

    fn schedule(&self) {
        // SAFETY: the stream is valid until it is released by our drop; the queue is retained by the call.
        unsafe { cs::FSEventStreamSetDispatchQueue(self.stream, Some(&self.queue)) };
    }

    fn begin(&self) -> bool {
        // SAFETY: the stream is valid, and on a queue.
        unsafe { cs::FSEventStreamStart(self.stream) }
    }

    /// Asks for what is held back; it comes later.
    pub(crate) fn flush(&self) {
        // SAFETY: the stream is valid and was started.
        unsafe { cs::FSEventStreamFlushAsync(self.stream) };
    }

    fn stop(&self) {
        // SAFETY: the stream is valid and was started.
        unsafe { cs::FSEventStreamStop(self.stream) };
    }

    fn invalidate(&self) {
        // SAFETY: the stream is valid, on a queue, and does not run.
        unsafe { cs::FSEventStreamInvalidate(self.stream) };
    }

    fn release(&self) {
        // SAFETY: this is the one reference that `create` gave, and our drop, which calls this last, the only end of it.
        unsafe { cs::FSEventStreamRelease(self.stream) };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.started {
            self.stop();
        }
        self.invalidate();
        // A callback that runs now runs on the queue, which is serial: behind it nothing runs any more.
        self.queue.exec_sync(|| {});
        self.release();
    }
}

fn create(path: &str, since: u64, receiver: Receiver) -> Option<cs::FSEventStreamRef> {
    let paths = CFArray::from_retained_objects(&[CFString::from_str(path)]);
    let info = Box::into_raw(Box::new(receiver));
    let mut context = cs::FSEventStreamContext {
        version: 0,
        info: info.cast(),
        retain: None,
        release: Some(release_receiver),
        copyDescription: None,
    };
    // SAFETY: the callback takes its arguments as FSEvents.h describes them for these flags; the context is copied by the
    // call; the paths are strings.
    let stream = unsafe {
        cs::FSEventStreamCreate(None, Some(received), &raw mut context, paths.as_opaque(), since, LATENCY, FLAGS)
    };
    if stream.is_null() {
        // SAFETY: the pointer is the one from above, and there is no stream that could release it.
        drop(unsafe { Box::from_raw(info) });
        return None;
    }
    Some(stream)
}

/// Called by the system when a stream is gone.
unsafe extern "C-unwind" fn release_receiver(info: *const c_void) {
    // SAFETY: it is the pointer `create` made of a box, and this is called once, after the last callback.
    drop(unsafe { Box::from_raw(info.cast_mut().cast::<Receiver>()) });
}

type RowData = CFDictionary<CFString, CFType>;

/// Called by the system with rows.
unsafe extern "C-unwind" fn received(
    _stream: cs::ConstFSEventStreamRef,
    info: *mut c_void,
    count: usize,
    paths: NonNull<c_void>,
    flags: NonNull<cs::FSEventStreamEventFlags>,
    ids: NonNull<cs::FSEventStreamEventId>,
) {
    // SAFETY: it is the pointer `create` made of a box, which lives as long as the stream.
    let receiver = unsafe { &*info.cast::<Receiver>() };
    // SAFETY: with the flags UseCFTypes and UseExtendedData this is an array of dictionaries, alive during the call.
    let data = unsafe { paths.cast::<CFArray<RowData>>().as_ref() };
    // SAFETY: FSEvents.h: an array of `count` elements, alive during the call.
    let flags = unsafe { std::slice::from_raw_parts(flags.as_ptr(), count) };
    // SAFETY: the same.
    let ids = unsafe { std::slice::from_raw_parts(ids.as_ptr(), count) };
    let rows =
        flags.iter().zip(ids).enumerate().map(|(index, (&flags, &id))| row(data.get(index), flags, id)).collect();
    receiver.inbox.put(Batch { root: receiver.root, rows, at: SystemClock.now() });
}

fn row(data: Option<CFRetained<RowData>>, flags: u32, id: u64) -> Row {
    let value = |key: &'static str| data.as_ref()?.get(&CFString::from_static_str(key));
    let path = value(PATH_KEY).and_then(|path| path.downcast::<CFString>().ok());
    let file = value(FILE_KEY).and_then(|file| file.downcast::<CFNumber>().ok());
    Row {
        path: path.map(|path| path.to_string().into_bytes()),
        flags: Flags(flags),
        id,
        file: file.and_then(|file| file.as_i64()).map(i64::cast_unsigned),
    }
}
