//! The pair of sockets between a coordinator and one worker.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;

use super::{FromWorker, Inbox, PREAMBLE, Violation, push};

/// What a worker gets of its coordinator.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) socket: UnixStream,
    /// What the worker reads from.
    pub(crate) inward: OwnedFd,
    /// What it writes to.
    pub(crate) outward: OwnedFd,
}

/// The coordinator's end. It never waits: what the worker does not take yet is kept.
#[derive(Debug)]
pub(crate) struct Link {
    socket: UnixStream,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// How much of it has gone.
    sent: usize,
    closed: bool,
}

/// Makes a pair of sockets and sends the preamble and both descriptors into it.
pub(crate) fn connect(
    inward: BorrowedFd<'_>,
    outward: BorrowedFd<'_>,
) -> io::Result<(Link, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [inward, outward];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("two descriptors do not fit a message"));
    }
    let preamble = [IoSlice::new(&PREAMBLE)];
    let sent = sendmsg(&ours, &preamble, &mut control, SendFlags::empty())?;
    if sent != PREAMBLE.len() {
        return Err(io::Error::other("a new socket takes no 12 bytes"));
    }
    ours.set_nonblocking(true)?;
    let link = Link {
        socket: ours,
        inbox: Inbox::default(),
        outbox: Vec::new(),
        sent: 0,
        closed: false,
    };
    Ok((link, OwnedFd::from(theirs)))
}

/// Reads the preamble and both descriptors at the worker's end, and greets back.
pub(crate) fn receive(mut socket: UnixStream) -> io::Result<Handles> {
    let mut preamble = [0; PREAMBLE.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut preamble)];
    let came = recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let mut descriptors = descriptors.flatten();
    let handles = descriptors.next().zip(descriptors.next());
    drop(descriptors);
    if came.bytes != PREAMBLE.len() || preamble != PREAMBLE {
        let violation = Violation::Preamble(preamble[..came.bytes].to_vec());
        return Err(io::Error::other(violation));
    }
    let (inward, outward) =
        handles.ok_or_else(|| io::Error::other("the coordinator sent no shared memory"))?;
    socket.write_all(&PREAMBLE)?;
    Ok(Handles {
        socket,
        inward,
        outward,
    })
}

/// What came of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// Perhaps more will.
    Something,
    /// There was nothing for now.
    Nothing,
    /// The other end is closed.
    End,
}

impl Link {
    /// Adds a message, and sends what can be sent.
    ///
    /// # Errors
    /// The length of a message that is too long.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), usize> {
        push(&mut self.outbox, message)?;
        self.flush();
        Ok(())
    }

    /// Sends what the worker takes now. That it is gone is told by its process, not by this.
    pub(crate) fn flush(&mut self) {
        while self.sent < self.outbox.len() && !self.closed {
            match self.socket.write(&self.outbox[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.closed = true,
            }
        }
        self.outbox.clear();
        self.sent = 0;
    }

    /// Is there something that the worker has not taken?
    pub(crate) fn is_behind(&self) -> bool {
        self.sent < self.outbox.len() && !self.closed
    }

    /// Reads what is there, at most `most` bytes of it.
    pub(crate) fn read(&mut self, buffer: &mut [u8], most: usize) -> Came {
        let mut came = 0;
        while came < most {
            match self.socket.read(buffer) {
                Ok(0) => return Came::End,
                Ok(count) => {
                    self.inbox.put(&buffer[..count]);
                    came += count;
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Came::End,
            }
        }
        if came == 0 {
            return Came::Nothing;
        }
        Came::Something
    }

    /// The next message of the worker's.
    pub(crate) fn next(&mut self) -> Result<Option<FromWorker>, Violation> {
        self.inbox.next()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arena, ToWorker};
    use super::*;

    #[test]
    fn descriptors_and_messages_cross() {
        let (inward, inward_fd) = Arena::create(4096).unwrap();
        let (_outward, outward_fd) = Arena::create(8192).unwrap();
        let (mut link, end) = connect(inward_fd.as_fd(), outward_fd.as_fd()).unwrap();
        let mut handles = receive(UnixStream::from(end)).unwrap();
        inward.put(100, b"pixels").unwrap();
        let theirs = Arena::open(handles.inward).unwrap();
        let mut found = Vec::new();
        theirs.take(100, 6, &mut found).unwrap();
        assert_eq!(found, b"pixels");
        assert_eq!(Arena::open(handles.outward).unwrap().bytes(), 8192);

        let mut bytes = Vec::new();
        push(&mut bytes, &FromWorker::Ready).unwrap();
        handles.socket.write_all(&bytes).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(link.read(&mut buffer, 1 << 16), Came::Something);
        assert_eq!(link.next(), Ok(Some(FromWorker::Ready)));
        assert_eq!(link.next(), Ok(None));
        drop(handles.socket);
        assert_eq!(link.read(&mut buffer, 1 << 16), Came::End);
    }

    #[test]
    fn a_worker_that_takes_nothing_stops_nobody() {
        let (_arena, memory) = Arena::create(4096).unwrap();
        let (mut link, end) = connect(memory.as_fd(), memory.as_fd()).unwrap();
        let message = ToWorker::Batch {
            batch: 1,
            records: vec![(0, super::super::Body::Here(vec![7; 1 << 20]))],
        };
        for _ in 0..4 {
            link.send(&message).unwrap();
        }
        assert!(link.is_behind());
        let handles = receive(UnixStream::from(end)).unwrap();
        let mut socket = handles.socket;
        let reader = std::thread::spawn(move || {
            let mut inbox = Inbox::after_greeting();
            let (mut buffer, mut found) = ([0; 4096], 0);
            while found < 4 {
                let count = socket.read(&mut buffer).unwrap();
                inbox.put(&buffer[..count]);
                while inbox.next::<ToWorker>().unwrap().is_some() {
                    found += 1;
                }
            }
            found
        });
        while link.is_behind() {
            link.flush();
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), 4);
    }
}
