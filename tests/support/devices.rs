//! A folder that looks like what a machine says of its devices.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jadoube::daemon::serial::Roots;
use tempfile::TempDir;

/// A sysfs and a /dev in a folder that ends with the test.
pub struct Devices(TempDir);

impl Devices {
    pub fn new() -> Devices {
        let devices = Devices(TempDir::new().unwrap());
        fs::create_dir_all(devices.roots().dev).unwrap();
        devices
    }

    /// The folder in which everything stands.
    #[allow(dead_code, reason = "not every test that plugs in needs it")]
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn roots(&self) -> Roots {
        Roots {
            sys: self.0.path().join("sys"),
            dev: self.0.path().join("dev"),
        }
    }

    pub fn dev(&self, name: &str) -> PathBuf {
        self.roots().dev.join(name)
    }

    /// A device of these USB ids appears: in the order in which the kernel makes it, the node last.
    pub fn list(&self, name: &str, usb: &str, node: &Path) {
        let Roots { sys, .. } = self.roots();
        let device = sys.join("devices").join(name);
        fs::create_dir_all(device.join("interface")).unwrap();
        let (vendor, product) = usb.split_once(':').unwrap();
        fs::write(device.join("idVendor"), format!("{vendor}\n")).unwrap();
        fs::write(device.join("idProduct"), format!("{product}\n")).unwrap();
        symlink(node, self.dev(name)).unwrap();
        let class = sys.join("class/tty").join(name);
        fs::create_dir_all(&class).unwrap();
        symlink(device.join("interface"), class.join("device")).unwrap();
    }

    pub fn unlist(&self, name: &str) {
        let Roots { sys, .. } = self.roots();
        fs::remove_dir_all(sys.join("class/tty").join(name)).unwrap();
        fs::remove_dir_all(sys.join("devices").join(name)).unwrap();
        fs::remove_file(self.dev(name)).unwrap();
    }
}
