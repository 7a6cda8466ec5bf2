//! The serial devices of this machine as sysfs shows them. Nothing here opens a device.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Roots;
use crate::wire::Family;

/// A USB id that a chess board is known to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownUsb {
    /// Vendor and product.
    pub id: UsbId,
    /// What has it, for people.
    pub what: &'static str,
    /// What may be asked for there, in this order. Whatever stands here is said to all devices with this id.
    pub may_be: &'static [Family],
}

/// Any board may hide behind it.
const ANY: &[Family] = &[Family::Dgt, Family::Psb1];
/// Microcontrollers, on which whoever builds a board has written what it speaks; they are never sent the commands of another make.
const OWN_MAKE: &[Family] = &[Family::Psb1];

/// USB ids behind which a chess board may stand; only these are ever asked uninvited. The list in `systemd/60-jadoube.rules` follows it.
pub const KNOWN_USB_IDS: &[KnownUsb] = &[
    // Protocol sheet, section 1: FT232 inside early USB boards and every adapter to RS-232 boards; no serial number. Anything may hide behind it.
    KnownUsb {
        id: UsbId {
            vendor: 0x0403,
            product: 0x6001,
        },
        what: "FTDI adapter",
        may_be: ANY,
    },
    // Protocol sheet, section 1: boards of the Bluetooth era, firmware 3.x. Microchip's own example id, so not only boards have it.
    KnownUsb {
        id: UsbId {
            vendor: 0x04d8,
            product: 0x000a,
        },
        what: "Microchip CDC",
        may_be: ANY,
    },
    // Protocol sheet, section 1: USB-C boards and Smart Board, firmware 4.x; product string "DGT e-Board".
    KnownUsb {
        id: UsbId {
            vendor: 0x045b,
            product: 0x8111,
        },
        what: "DGT e-Board",
        may_be: &[Family::Dgt],
    },
    // Sheet of boards, 1: the bridges and microcontrollers that boards of one's own make are built with. All kinds of devices have them.
    KnownUsb {
        id: UsbId {
            vendor: 0x10c4,
            product: 0xea60,
        },
        what: "CP210x bridge",
        may_be: OWN_MAKE,
    },
    KnownUsb {
        id: UsbId {
            vendor: 0x1a86,
            product: 0x7523,
        },
        what: "CH340 bridge",
        may_be: OWN_MAKE,
    },
    KnownUsb {
        id: UsbId {
            vendor: 0x2341,
            product: 0x0043,
        },
        what: "Arduino Uno",
        may_be: OWN_MAKE,
    },
    KnownUsb {
        id: UsbId {
            vendor: 0x2341,
            product: 0x8036,
        },
        what: "Arduino Leonardo",
        may_be: OWN_MAKE,
    },
    KnownUsb {
        id: UsbId {
            vendor: 0x303a,
            product: 0x1001,
        },
        what: "Espressif CDC",
        may_be: OWN_MAKE,
    },
    KnownUsb {
        id: UsbId {
            vendor: 0x2e8a,
            product: 0x000a,
        },
        what: "Raspberry Pi Pico",
        may_be: OWN_MAKE,
    },
];

/// What may be asked for on a port that a person has named.
pub(super) const NAMED: &[Family] = ANY;

/// Serial devices, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices(pub Vec<Device>);

/// One serial device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, such as `ttyACM0`. It changes from plugging to plugging.
    pub name: String,
    /// Its node.
    pub path: PathBuf,
    /// Lasting names of the node: links under `serial/by-id` and `serial/by-path`.
    pub links: Vec<PathBuf>,
    /// What its USB descriptors say; absent for a port that is not on USB.
    pub usb: Option<Usb>,
}

/// What USB descriptors say of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usb {
    /// Vendor and product.
    pub id: UsbId,
    /// The product string.
    pub product: Option<String>,
    /// The serial number string. That of the adapter: a board's own number is another one.
    pub serial: Option<String>,
}

/// Vendor and product number, written `0403:6001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsbId {
    /// idVendor.
    pub vendor: u16,
    /// idProduct.
    pub product: u16,
}

/// A text that is not two numbers of four hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid usb id {0:?}: expected four hexadecimal digits, a colon and four more, such as \"0403:6001\""
)]
pub struct UsbIdError(String);

impl Devices {
    /// Lists what is there now. Whatever cannot be read is left out; by the time the list is used, it may be out of date.
    pub fn scan(roots: &Roots) -> Devices {
        let Ok(entries) = fs::read_dir(roots.sys.join("class/tty")) else {
            return Devices::default();
        };
        let links = lasting_names(&roots.dev);
        let mut devices: Vec<Device> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let class = entry.path();
                // Consoles and pseudo terminals have no device behind them; a ttyS of type 0 has no chip.
                let hardware = class.join("device").canonicalize().ok()?;
                if attribute(&class, "type").is_some_and(|kind| kind == "0") {
                    return None;
                }
                let path = roots.dev.join(&name);
                let node = path.canonicalize().ok()?;
                let links = links
                    .iter()
                    .filter(|(_, target)| *target == node)
                    .map(|(link, _)| link.clone());
                Some(Device {
                    links: links.collect(),
                    usb: usb_of(&hardware, &roots.sys),
                    name,
                    path,
                })
            })
            .collect();
        devices.sort_by_key(|device| natural(&device.name));
        Devices(devices)
    }
}

impl Device {
    /// What is known to have this device's USB id, if a board may.
    pub fn known(&self, extra: &[UsbId]) -> Option<&'static str> {
        let id = self.usb.as_ref()?.id;
        match KNOWN_USB_IDS.iter().find(|known| known.id == id) {
            Some(known) => Some(known.what),
            None => extra.contains(&id).then_some("listed in the configuration"),
        }
    }

    /// What may be asked for, if a board may be there.
    pub fn may_be(&self, extra: &[UsbId]) -> &'static [Family] {
        let Some(usb) = &self.usb else { return &[] };
        match KNOWN_USB_IDS.iter().find(|known| known.id == usb.id) {
            Some(known) => known.may_be,
            None if extra.contains(&usb.id) => NAMED,
            None => &[],
        }
    }

    /// Its node, links resolved as far as there are any.
    pub fn node(&self) -> PathBuf {
        self.path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone())
    }

    /// Whether its node is this one, links resolved.
    pub fn is_at(&self, node: &Path) -> bool {
        self.path == node || self.path.canonicalize().is_ok_and(|own| own == node)
    }

    /// The device in a few words: path, USB id and product.
    pub fn summary(&self) -> String {
        match &self.usb {
            Some(Usb {
                id,
                product: Some(product),
                ..
            }) => format!("{} ({id} {product})", self.path.display()),
            Some(Usb { id, .. }) => format!("{} ({id})", self.path.display()),
            None => format!("{} (not USB)", self.path.display()),
        }
    }
}

impl fmt::Display for UsbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.product)
    }
}

impl FromStr for UsbId {
    type Err = UsbIdError;

    fn from_str(text: &str) -> Result<UsbId, UsbIdError> {
        text.split_once(':')
            .and_then(|(vendor, product)| {
                Some(UsbId {
                    vendor: hex16(vendor)?,
                    product: hex16(product)?,
                })
            })
            .ok_or_else(|| UsbIdError(text.to_owned()))
    }
}

/// Tells one plugging from the next: a node made anew has another inode or another time of creation, though its name is the same.
/// Setting its owner or mode changes it too, which is wanted: what was refused before may now be open to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(u64, i64, i64);

impl Generation {
    /// Of the node at `path`; nothing if there is none.
    pub(super) fn of(path: &Path) -> Option<Generation> {
        let node = fs::metadata(path).ok()?;
        Some(Generation(node.ino(), node.ctime(), node.ctime_nsec()))
    }
}

/// Whether a device node is at `path`.
pub(super) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|node| node.file_type().is_char_device())
}

/// Links under `serial/`, each with the node it leads to.
fn lasting_names(dev: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut names: Vec<(PathBuf, PathBuf)> = ["by-id", "by-path"]
        .iter()
        .filter_map(|kind| fs::read_dir(dev.join("serial").join(kind)).ok())
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| Some((entry.path(), entry.path().canonicalize().ok()?)))
        .collect();
    names.sort();
    names
}

/// The descriptors of the USB device that `hardware` belongs to. A tty hangs one or two levels below it: its interface, and for
/// adapters the port of it.
fn usb_of(hardware: &Path, sys: &Path) -> Option<Usb> {
    let sys = sys.canonicalize().ok()?;
    let device = hardware
        .ancestors()
        .take_while(|folder| folder.starts_with(&sys))
        .find(|folder| folder.join("idVendor").is_file())?;
    let id = UsbId {
        vendor: hex16(&attribute(device, "idVendor")?)?,
        product: hex16(&attribute(device, "idProduct")?)?,
    };
    Some(Usb {
        id,
        product: attribute(device, "product"),
        serial: attribute(device, "serial"),
    })
}

/// One attribute, without what a terminal would obey: descriptors are whatever the device says.
fn attribute(folder: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(folder.join(name)).ok()?;
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn hex16(text: &str) -> Option<u16> {
    let digits = text.len() == 4 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if digits {
        u16::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

/// Sorts `ttyACM2` before `ttyACM10`.
pub(super) fn natural(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (
        stem.to_owned(),
        name[stem.len()..].parse().unwrap_or(0),
        name.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sysfs and a /dev in a folder. Nodes are plain files: nothing here may open them.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            Machine(tempfile::tempdir().unwrap())
        }

        fn roots(&self) -> Roots {
            Roots {
                sys: self.0.path().join("sys"),
                dev: self.0.path().join("dev"),
            }
        }

        /// `below`: the levels between the USB device and the tty.
        fn plug(&self, name: &str, below: &str, attributes: &[(&str, &str)]) {
            let Roots { sys, dev } = self.roots();
            let usb = sys.join("devices/usb1").join(format!("1-{name}"));
            let device = usb.join(below);
            let class = sys.join("class/tty").join(name);
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(&class).unwrap();
            symlink(&device, class.join("device")).unwrap();
            for (attribute, value) in attributes {
                fs::write(usb.join(attribute), format!("{value}\n")).unwrap();
            }
            fs::create_dir_all(&dev).unwrap();
            fs::write(dev.join(name), "").unwrap();
        }
    }

    #[test]
    fn an_empty_machine_has_no_devices() {
        let machine = Machine::new();
        assert_eq!(Devices::scan(&machine.roots()), Devices::default());
        fs::create_dir_all(machine.roots().sys.join("class/tty")).unwrap();
        assert_eq!(Devices::scan(&machine.roots()), Devices::default());
    }

    #[test]
    fn usb_ids_are_found_at_any_depth() {
        let machine = Machine::new();
        machine.plug(
            "ttyACM10",
            "1-1:1.0",
            &[
                ("idVendor", "045b"),
                ("idProduct", "8111"),
                ("product", "DGT e-Board"),
            ],
        );
        machine.plug(
            "ttyACM2",
            "1-2:1.0",
            &[
                ("idVendor", "1546"),
                ("idProduct", "01a7"),
                ("product", "u-blox \x1b[2J"),
            ],
        );
        machine.plug(
            "ttyUSB0",
            "1-3:1.0/ttyUSB0",
            &[
                ("idVendor", "0403"),
                ("idProduct", "6001"),
                ("serial", "A5"),
            ],
        );
        let found = Devices::scan(&machine.roots()).0;
        let names: Vec<_> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["ttyACM2", "ttyACM10", "ttyUSB0"]);
        assert_eq!(found[0].known(&[]), None);
        assert_eq!(
            found[0].known(&["1546:01a7".parse().unwrap()]),
            Some("listed in the configuration")
        );
        assert_eq!(
            found[0].usb.as_ref().unwrap().product.as_deref(),
            Some("u-blox [2J")
        );
        assert_eq!(found[1].known(&[]), Some("DGT e-Board"));
        assert_eq!(found[2].usb.as_ref().unwrap().serial.as_deref(), Some("A5"));
        assert_eq!(found[2].known(&[]), Some("FTDI adapter"));
    }

    #[test]
    fn half_of_a_device_is_no_reason_to_fail() {
        let machine = Machine::new();
        machine.plug("ttyACM0", "a", &[("idVendor", "045b")]);
        machine.plug(
            "ttyACM1",
            "a",
            &[("idVendor", "zzzz"), ("idProduct", "+123")],
        );
        machine.plug(
            "ttyACM2",
            "a",
            &[("idVendor", "045b"), ("idProduct", "8111")],
        );
        machine.plug(
            "ttyACM3",
            "a",
            &[("idVendor", "045b"), ("idProduct", "8111")],
        );
        fs::remove_file(machine.roots().dev.join("ttyACM2")).unwrap();
        machine.plug("ttyS0", "a", &[]);
        fs::write(machine.roots().sys.join("class/tty/ttyS0/type"), "0\n").unwrap();
        fs::create_dir_all(machine.roots().sys.join("class/tty/tty0")).unwrap();
        let found = Devices::scan(&machine.roots()).0;
        let usb: Vec<_> = found
            .iter()
            .map(|d| (d.name.as_str(), d.usb.is_some()))
            .collect();
        assert_eq!(
            usb,
            [("ttyACM0", false), ("ttyACM1", false), ("ttyACM3", true)]
        );
    }

    #[test]
    fn lasting_names_are_listed() {
        let machine = Machine::new();
        machine.plug(
            "ttyACM0",
            "a",
            &[("idVendor", "045b"), ("idProduct", "8111")],
        );
        let by_path = machine.roots().dev.join("serial/by-path");
        fs::create_dir_all(&by_path).unwrap();
        symlink("../../ttyACM0", by_path.join("usb-0:1.3:1.0")).unwrap();
        symlink("../../ttyACM7", by_path.join("dangling")).unwrap();
        let found = Devices::scan(&machine.roots()).0;
        assert_eq!(found[0].links, [by_path.join("usb-0:1.3:1.0")]);
    }

    #[test]
    fn usb_ids_round_trip() {
        for known in KNOWN_USB_IDS {
            assert_eq!(known.id.to_string().parse(), Ok(known.id));
        }
        for wrong in ["", "0403", "0403:", "403:6001", "0403:+001", "0403:60010"] {
            assert!(wrong.parse::<UsbId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_udev_rules_name_the_same_ids() {
        let rules = fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/systemd/60-jadoube.rules"
        ))
        .unwrap();
        let ids = rules
            .lines()
            .filter(|line| line.starts_with("SUBSYSTEM"))
            .map(|line| {
                let value = |key: &str| {
                    let (_, rest) = line.split_once(&format!("ATTRS{{{key}}}==\"")).unwrap();
                    rest.split('"').next().unwrap().to_owned()
                };
                format!("{}:{}", value("idVendor"), value("idProduct"))
            });
        assert_eq!(
            ids.collect::<Vec<_>>(),
            KNOWN_USB_IDS
                .iter()
                .map(|k| k.id.to_string())
                .collect::<Vec<_>>()
        );
    }
}
