//! `jadoube ports`: the serial devices, and what answers on them.

use super::{Failure, print_line};
use crate::daemon::desk;
use crate::daemon::serial::{Answer, Holder, Roots, Settings, Surveyed, survey};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Not yet: find out which board stands on which table, by lifting a piece there
    #[arg(long)]
    pub assign: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    if args.assign {
        return Err(Failure::failed("ports --assign is not built yet").advise(
            "Plug in one board at a time, run jadoube ports, and write the number it shows into its [[table]] as serial = \"…\".",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lines = runtime.block_on(list(&Roots::default(), &Settings::default()));
    if lines.is_empty() {
        tracing::info!("no serial device is plugged in");
    }
    for line in lines {
        print_line(line)?;
    }
    Ok(())
}

/// What is printed; nothing where there is no device.
pub async fn list(roots: &Roots, settings: &Settings) -> Vec<String> {
    let daemons = desk::ask().await;
    lines(&survey(roots, settings, &[], &daemons).await)
}

/// One of our own programs, if that is who has a port: a recording, or a daemon that does not answer.
pub(super) fn is_jadoube(holder: &Option<Holder>) -> bool {
    holder
        .as_ref()
        .is_some_and(|holder| holder.name == "jadoube")
}

/// One line a device under a heading: path, USB id, product, answer.
fn lines(devices: &[Surveyed]) -> Vec<String> {
    if devices.is_empty() {
        return Vec::new();
    }
    let heading = ["PORT", "USB ID", "PRODUCT", "WHAT ANSWERS"].map(str::to_owned);
    let cells = devices.iter().map(|Surveyed { device, answer }| {
        let usb = device.usb.as_ref();
        [
            device.path.display().to_string(),
            usb.map_or("-".to_owned(), |usb| usb.id.to_string()),
            usb.and_then(|usb| usb.product.clone())
                .unwrap_or("-".to_owned()),
            match answer {
                Answer::Board(identity) => identity.to_string(),
                Answer::Busy {
                    holder: Some(holder),
                    ..
                } if is_jadoube(&Some(holder.clone())) => {
                    format!("in use by the running {holder}")
                }
                Answer::Served {
                    by,
                    held: Some(held),
                    ..
                } => format!("{held}: in use by the running {by}"),
                Answer::Served { by, held: None, .. } => {
                    format!("in use by the running {by}, which is finding out what it is")
                }
                Answer::Busy { refusal, .. }
                | Answer::Stranger(refusal)
                | Answer::Refused(refusal) => {
                    format!("{}. {}", refusal.reason, refusal.advice)
                }
                Answer::Foreign if usb.is_none() => "not asked: not on USB".to_owned(),
                Answer::Foreign => {
                    "not asked: no chess board is known to have this USB id".to_owned()
                }
            },
        ]
    });
    let cells: Vec<[String; 4]> = std::iter::once(heading).chain(cells).collect();
    let width = |column: usize| {
        cells
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (path, usb, product) = (width(0), width(1), width(2));
    let line = |row: &[String; 4]| {
        format!(
            "{:path$}  {:usb$}  {:product$}  {}",
            row[0], row[1], row[2], row[3]
        )
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::daemon::desk::Held;
    use crate::daemon::serial::{Device, Identity, Refusal, Usb};

    #[test]
    fn each_device_has_a_line() {
        let device = |name: &str, usb: Option<(&str, &str)>, answer| Surveyed {
            device: Device {
                name: name.into(),
                path: format!("/dev/{name}").into(),
                links: Vec::new(),
                usb: usb.map(|(id, product)| Usb {
                    id: id.parse().unwrap(),
                    product: Some(product.into()),
                    serial: None,
                }),
            },
            answer,
        };
        let busy = |name: &str| Answer::Busy {
            holder: Some(Holder {
                pid: 12,
                name: name.into(),
            }),
            refusal: Refusal {
                reason: "/dev/x is in use".into(),
                advice: "Close it.".into(),
            },
        };
        let identity = Identity {
            family: crate::wire::Family::Dgt,
            serial: Some("3000147740".into()),
            short_serial: None,
            version: Some("3.10".into()),
        };
        let held = Held {
            table: "12".into(),
            status: Some("silent".into()),
            family: Some("dgt".into()),
            serial: Some("3000147740".into()),
            firmware: Some("3.10".into()),
            ..Held::default()
        };
        let served = |held: Option<Held>| Answer::Served {
            by: "jadoube (pid 12, node pi07)".into(),
            node: "pi07".into(),
            held: held.map(Box::new),
        };
        let lines = lines(&[
            device(
                "ttyACM0",
                Some(("045b:8111", "DGT e-Board")),
                Answer::Board(identity),
            ),
            device("ttyACM1", Some(("1546:01a7", "u-blox")), Answer::Foreign),
            device("ttyS0", None, Answer::Foreign),
            device("ttyUSB0", Some(("0403:6001", "FT232R")), busy("jadoube")),
            device("ttyUSB1", Some(("0403:6001", "FT232R")), busy("minicom")),
            device("ttyUSB2", Some(("0403:6001", "FT232R")), served(None)),
            device("ttyUSB3", Some(("0403:6001", "FT232R")), served(Some(held))),
        ]);
        assert_eq!(
            lines,
            [
                "PORT          USB ID     PRODUCT      WHAT ANSWERS",
                "/dev/ttyACM0  045b:8111  DGT e-Board  dgt board 3000147740, firmware 3.10",
                "/dev/ttyACM1  1546:01a7  u-blox       not asked: no chess board is known to have this USB id",
                "/dev/ttyS0    -          -            not asked: not on USB",
                "/dev/ttyUSB0  0403:6001  FT232R       in use by the running jadoube (pid 12)",
                "/dev/ttyUSB1  0403:6001  FT232R       /dev/x is in use. Close it.",
                "/dev/ttyUSB2  0403:6001  FT232R       in use by the running jadoube (pid 12, node pi07), which is finding out what it is",
                "/dev/ttyUSB3  0403:6001  FT232R       dgt board 3000147740, firmware 3.10, table 12, silent: in use by the running jadoube (pid 12, node pi07)",
            ]
        );
    }
}
