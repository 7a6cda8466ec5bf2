//! One open port, held by us alone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_serial::{
    DataBits, ErrorKind, FlowControl, Parity, SerialPort, SerialPortBuilderExt, SerialStream,
    StopBits,
};

use super::devices::is_device;

/// Opens a port: 9600 baud, 8N1, raw, no flow control (protocol sheet 1), and for nobody else. Needs a tokio runtime. Boards that speak
/// faster are for [`Port::set_speed`].
///
/// A port that this process holds is refused without touching it, and so is one that is seen in another process's hands: when
/// root opens a locked port and fails, closing it again takes the lock away from its owner.
pub fn open(path: &Path) -> Result<Port, OpenError> {
    let node = path
        .canonicalize()
        .map_err(|error| OpenError::from_io(path, &error))?;
    if !is_device(&node) || is_other_device(&node) {
        return Err(OpenError::NotATty { path: path.into() });
    }
    let claim = Claim::new(&node).ok_or_else(|| OpenError::HeldHere { path: path.into() })?;
    if let Some(holder) = holder(Path::new("/proc"), &node) {
        return Err(OpenError::Busy {
            path: path.into(),
            holder: Some(holder),
        });
    }
    let stream = tokio_serial::new(node.to_string_lossy(), 9600)
        .data_bits(DataBits::Eight)
        .parity(Parity::None)
        .stop_bits(StopBits::One)
        .flow_control(FlowControl::None)
        .exclusive(true)
        .open_native_async()
        .map_err(|error| OpenError::from_serial(path, &node, &error))?;
    Ok(Port { stream, claim })
}

/// An open port. Dropping it closes it and lets others have it.
#[derive(Debug)]
pub struct Port {
    // Closed before the claim falls: fields drop in this order.
    stream: SerialStream,
    claim: Claim,
}

impl Port {
    /// Waits for bytes. An error means that the device is gone and the port must be dropped at once: a node that is still open
    /// makes the kernel give the board another name when it is plugged in again. May be cancelled without loss.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer).await {
            // A port that hung up answers so at once and for ever.
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "hung up")),
            other => other,
        }
    }

    /// Writes all bytes, or fails within `limit`; then the device is gone too. Does not flush: that may never end.
    pub async fn write(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        tokio::time::timeout(limit, self.stream.write_all(bytes))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "takes no bytes")))
    }

    /// Sets the speed of the line. An error means that the device is gone.
    pub fn set_speed(&mut self, baud: u32) -> io::Result<()> {
        Ok(self.stream.set_baud_rate(baud)?)
    }

    /// The node, links resolved.
    pub fn node(&self) -> &Path {
        &self.claim.0
    }
}

impl AsyncRead for Port {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Port {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Who holds a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its command name.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Why a port did not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not plugged in, or unplugged between finding and opening.
    #[error("{} is not there", path.display())]
    NotThere {
        /// As asked for.
        path: PathBuf,
    },
    /// We may not.
    #[error("no permission to open {}", path.display())]
    NoPermission {
        /// As asked for.
        path: PathBuf,
        /// The group that may, if it has a name.
        group: Option<String>,
    },
    /// Another process has it.
    #[error("{} is in use{}", path.display(), holder.as_ref().map(|h| format!(" by {h}")).unwrap_or_default())]
    Busy {
        /// As asked for.
        path: PathBuf,
        /// Who, as far as we may see.
        holder: Option<Holder>,
    },
    /// This process has it, for another table.
    #[error("{} is in use by another table", path.display())]
    HeldHere {
        /// As asked for.
        path: PathBuf,
    },
    /// A file or another kind of device.
    #[error("{} is not a serial port", path.display())]
    NotATty {
        /// As asked for.
        path: PathBuf,
    },
    /// Anything else.
    #[error("cannot open {}: {reason}", path.display())]
    Other {
        /// As asked for.
        path: PathBuf,
        /// In the system's words.
        reason: String,
    },
}

impl OpenError {
    /// What to do about it, as a sentence.
    pub fn advice(&self) -> String {
        match self {
            OpenError::NotThere { .. } => {
                "Plug the board in; `jadoube ports` lists what is there.".to_owned()
            }
            OpenError::NoPermission { group, .. } => permission_advice(group.as_deref()),
            OpenError::Busy {
                holder: Some(holder),
                ..
            } => format!("Close {holder}; jadoube keeps trying."),
            OpenError::Busy { holder: None, path } => {
                format!(
                    "Close the program that has it (`fuser -v {}` as root names it); jadoube keeps trying.",
                    path.display()
                )
            }
            OpenError::HeldHere { .. } => {
                "Give each table its own port or serial number.".to_owned()
            }
            OpenError::NotATty { .. } => {
                "Name a serial port; `jadoube ports` lists them.".to_owned()
            }
            OpenError::Other { .. } => {
                "Unplug the board and plug it in again; see the kernel's messages (`dmesg`)."
                    .to_owned()
            }
        }
    }

    fn from_io(path: &Path, error: &io::Error) -> OpenError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => OpenError::NotThere { path },
            io::ErrorKind::PermissionDenied => OpenError::NoPermission {
                group: group_of(&path),
                path,
            },
            _ => OpenError::Other {
                path,
                reason: error.to_string(),
            },
        }
    }

    fn from_serial(path: &Path, node: &Path, error: &tokio_serial::Error) -> OpenError {
        let path = path.to_owned();
        match error.kind() {
            _ if !node.exists() => OpenError::NotThere { path },
            // EBUSY from TIOCEXCL, or a lock that another process has on the node.
            ErrorKind::NoDevice => OpenError::Busy {
                path,
                holder: holder(Path::new("/proc"), node),
            },
            ErrorKind::Io(kind) => {
                OpenError::from_io(&path, &io::Error::new(kind, error.to_string()))
            }
            // The number of these errors is lost on the way here, their name is not.
            _ if error.description == "Operation not permitted" => OpenError::NoPermission {
                group: group_of(node),
                path,
            },
            _ if error.description == "Not a typewriter" => OpenError::NotATty { path },
            _ if error.description.starts_with("No such device") => OpenError::NotThere { path },
            _ => OpenError::Other {
                path,
                reason: error.to_string(),
            },
        }
    }
}

/// Nodes that this process has open, whoever in it has them.
static CLAIMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether this process has the node open.
pub(super) fn is_claimed(node: &Path) -> bool {
    claimed().contains(node)
}

/// The right to open a node, held by one in this process at a time.
#[derive(Debug)]
struct Claim(PathBuf);

impl Claim {
    fn new(node: &Path) -> Option<Claim> {
        claimed()
            .insert(node.to_owned())
            .then(|| Claim(node.to_owned()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        claimed().remove(&self.0);
    }
}

fn claimed() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set of paths is whole whatever happened to the thread that held it.
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another process that has `node` open. Without being root only our own user's processes can be seen.
fn holder(proc: &Path, node: &Path) -> Option<Holder> {
    let ourselves = std::process::id();
    fs::read_dir(proc).ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        if pid == ourselves {
            return None;
        }
        let open: Vec<(OsString, PathBuf)> = fs::read_dir(entry.path().join("fd"))
            .ok()?
            .flatten()
            .filter_map(|fd| Some((fd.file_name(), fs::read_link(fd.path()).ok()?)))
            .collect();
        if !open.iter().any(|(_, target)| target == node) {
            return None;
        }
        // A virtual board has both ends of its pseudo terminal open, and means to be talked to.
        let is_other_end = |(fd, target): &(OsString, PathBuf)| {
            target.ends_with("ptmx")
                && fs::read_to_string(entry.path().join("fdinfo").join(fd))
                    .is_ok_and(|info| is_master_of(&info, node))
        };
        if open.iter().any(is_other_end) {
            return None;
        }
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        let name = match name.is_empty() {
            true => "a program".to_owned(),
            false => name,
        };
        Some(Holder { pid, name })
    })
}

/// Whether `/proc/…/fdinfo` tells of the master of this pseudo terminal.
fn is_master_of(info: &str, node: &Path) -> bool {
    let index = info
        .lines()
        .find_map(|line| line.strip_prefix("tty-index:"));
    index.is_some_and(|index| node == Path::new("/dev/pts").join(index.trim()))
}

/// Whether sysfs knows the node as a device of another kind. Of pseudo terminals it knows nothing; for those, opening tells.
fn is_other_device(node: &Path) -> bool {
    let Ok(number) = fs::metadata(node).map(|node| node.rdev()) else {
        return false;
    };
    // As Linux packs them: makedev(3).
    let (major, minor) = (
        (number >> 8) & 0xfff,
        number & 0xff | (number >> 12) & 0xfff00,
    );
    let kind = fs::read_link(format!("/sys/dev/char/{major}:{minor}/subsystem"));
    kind.is_ok_and(|kind| !kind.ends_with("tty"))
}

/// What to do where a port may not be opened: the rule gives it to a group, and the user has to be in that. A node of group root
/// opens to nobody's membership before the rule is there.
pub fn permission_advice(group: Option<&str>) -> String {
    let group = group.filter(|group| *group != "root").unwrap_or("dialout");
    format!(
        "Install the udev rule (60-jadoube.rules) and plug the board in again, and add the user that runs jadoube to group {group} (usermod -aG {group} USER), who then logs in again."
    )
}

/// The name of the group that a node belongs to.
fn group_of(node: &Path) -> Option<String> {
    let gid = fs::metadata(node).ok()?.gid();
    group_name(&fs::read_to_string("/etc/group").ok()?, gid)
}

fn group_name(groups: &str, gid: u32) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_refusal_names_the_port_and_says_what_to_do() {
        let path = || PathBuf::from("/dev/ttyACM0");
        let minicom = Holder {
            pid: 812,
            name: "minicom".into(),
        };
        let cases = [
            (
                OpenError::NotThere { path: path() },
                "/dev/ttyACM0 is not there",
                "Plug",
            ),
            (
                OpenError::NoPermission {
                    path: path(),
                    group: Some("dialout".into()),
                },
                "no permission to open /dev/ttyACM0",
                "usermod -aG dialout",
            ),
            (
                OpenError::NoPermission {
                    path: path(),
                    group: Some("root".into()),
                },
                "no permission to open /dev/ttyACM0",
                "60-jadoube.rules",
            ),
            (
                OpenError::Busy {
                    path: path(),
                    holder: Some(minicom),
                },
                "/dev/ttyACM0 is in use by minicom (pid 812)",
                "Close minicom",
            ),
            (
                OpenError::Busy {
                    path: path(),
                    holder: None,
                },
                "/dev/ttyACM0 is in use",
                "fuser -v /dev/ttyACM0",
            ),
            (
                OpenError::HeldHere { path: path() },
                "/dev/ttyACM0 is in use by another table",
                "its own port",
            ),
            (
                OpenError::NotATty { path: path() },
                "/dev/ttyACM0 is not a serial port",
                "jadoube ports",
            ),
            (
                OpenError::Other {
                    path: path(),
                    reason: "I/O error".into(),
                },
                "cannot open /dev/ttyACM0: I/O error",
                "dmesg",
            ),
        ];
        for (error, says, advises) in cases {
            assert_eq!(error.to_string(), says);
            assert!(
                error.advice().contains(advises),
                "{says}: {}",
                error.advice()
            );
            assert!(!error.advice().contains('\n'), "{says}");
        }
    }

    #[test]
    fn errors_of_the_system_find_their_kind() {
        let here = std::env::current_exe().unwrap();
        let kind = |kind, text: &str| {
            OpenError::from_serial(&here, &here, &tokio_serial::Error::new(kind, text))
        };
        assert!(matches!(
            kind(
                ErrorKind::Io(io::ErrorKind::PermissionDenied),
                "Permission denied"
            ),
            OpenError::NoPermission { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::Unknown, "Operation not permitted"),
            OpenError::NoPermission { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::Io(io::ErrorKind::NotFound), "No such file"),
            OpenError::NotThere { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::Unknown, "No such device or address"),
            OpenError::NotThere { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::NoDevice, "Device or resource busy"),
            OpenError::Busy { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::Unknown, "Not a typewriter"),
            OpenError::NotATty { .. }
        ));
        assert!(matches!(
            kind(ErrorKind::Unknown, "I/O error"),
            OpenError::Other { .. }
        ));
        let gone = Path::new("/dev/no-such-port");
        let vanished = OpenError::from_serial(
            gone,
            gone,
            &tokio_serial::Error::new(ErrorKind::Unknown, "I/O error"),
        );
        assert_eq!(vanished, OpenError::NotThere { path: gone.into() });
    }

    #[tokio::test]
    async fn what_is_no_port_is_not_opened() {
        assert_eq!(
            open(Path::new("/dev/no-such-port")).unwrap_err(),
            OpenError::NotThere {
                path: "/dev/no-such-port".into()
            }
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(
            open(file.path()).unwrap_err(),
            OpenError::NotATty {
                path: file.path().into()
            }
        );
        assert_eq!(
            open(Path::new("/dev/null")).unwrap_err(),
            OpenError::NotATty {
                path: "/dev/null".into()
            }
        );
        assert!(
            !is_claimed(Path::new("/dev/null")),
            "a refusal claims nothing"
        );
    }

    #[test]
    fn the_holder_is_found_among_the_processes() {
        let proc = tempfile::tempdir().unwrap();
        let node = Path::new("/dev/ttyACM0");
        for (pid, comm, target) in [
            ("17", "getty\n", "/dev/ttyS0"),
            ("812", "mini\x1bcom\n", "/dev/ttyACM0"),
            ("self", "x", "/dev/ttyACM0"),
        ] {
            let fd = proc.path().join(pid).join("fd");
            fs::create_dir_all(&fd).unwrap();
            symlink(target, fd.join("3")).unwrap();
            fs::write(proc.path().join(pid).join("comm"), comm).unwrap();
        }
        assert_eq!(
            holder(proc.path(), node),
            Some(Holder {
                pid: 812,
                name: "minicom".into()
            })
        );
        assert_eq!(holder(proc.path(), Path::new("/dev/ttyACM1")), None);
        assert_eq!(holder(Path::new("/no-such-proc"), node), None);
    }

    #[test]
    fn a_virtual_board_does_not_hold_its_own_port() {
        let proc = tempfile::tempdir().unwrap();
        let node = Path::new("/dev/pts/4");
        for (pid, index) in [("12", "4"), ("13", "44")] {
            let process = proc.path().join(pid);
            fs::create_dir_all(process.join("fd")).unwrap();
            fs::create_dir_all(process.join("fdinfo")).unwrap();
            symlink("/dev/ptmx", process.join("fd/3")).unwrap();
            symlink(node, process.join("fd/4")).unwrap();
            let info = format!("pos:\t0\nflags:\t02\ntty-index:\t{index}\n");
            fs::write(process.join("fdinfo/3"), info).unwrap();
        }
        let held = Holder {
            pid: 13,
            name: "a program".into(),
        };
        assert_eq!(holder(proc.path(), node), Some(held));
    }

    #[test]
    fn groups_have_names() {
        let groups = "root:x:0:\ndialout:x:20:pi\nbroken\n";
        assert_eq!(group_name(groups, 20).as_deref(), Some("dialout"));
        assert_eq!(group_name(groups, 21), None);
    }
}
