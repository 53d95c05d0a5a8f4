//! Network cards: hardware addresses where none is given, and the order in which PVE writes their options.

use crate::state::property::Property;

/// A hardware address of the project's own range.
fn mac() -> String {
    let drawn = super::random();
    let byte = |at: u64| drawn >> (at * 8) & 0xff;
    format!("BC:24:11:{:02X}:{:02X}:{:02X}", byte(0), byte(1), byte(2))
}

/// A card of a VM as it is stored: `model=address` first.
pub(super) fn qemu(text: &str) -> String {
    let mut model = String::new();
    let mut address = None;
    let mut rest = Property::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            None => part.clone_into(&mut model),
            Some(("model", value)) => value.clone_into(&mut model),
            Some(("macaddr", value)) => address = Some(value.to_owned()),
            Some((key, value)) if is_model(key) => {
                key.clone_into(&mut model);
                address = Some(value.to_owned());
            }
            Some((key, value)) => rest.set(key, value),
        }
    }
    let head = format!("{model}={}", address.unwrap_or_else(mac));
    let rest = rest.write();
    if rest.is_empty() { head } else { format!("{head},{rest}") }
}

fn is_model(key: &str) -> bool {
    key.starts_with("e1000")
        || matches!(
            key,
            "virtio" | "i82551" | "i82557b" | "i82559er" | "ne2k_isa" | "ne2k_pci" | "pcnet" | "rtl8139" | "vmxnet3"
        )
}

/// A card of a container as it is stored: its name first, with an address and the one type there is.
pub(super) fn lxc(text: &str) -> String {
    let mut card = Property::read(text, &[]);
    if card.get("hwaddr").is_none() {
        card.set("hwaddr", mac());
    }
    card.set("type", "veth");
    card.write_with(&["name"])
}

/// The bridge of a card.
pub(super) fn bridge(text: &str) -> Option<String> {
    Property::read(text, &[]).remove("bridge")
}

#[cfg(test)]
mod tests {
    #[test]
    fn cards_are_written_in_order() {
        let card = super::qemu("firewall=1,bridge=vmbr0,virtio=AA:BB:CC:DD:EE:FF");
        assert_eq!(card, "virtio=AA:BB:CC:DD:EE:FF,bridge=vmbr0,firewall=1");
        assert!(super::qemu("model=e1000,bridge=vmbr0").starts_with("e1000=BC:24:11:"));
        let card = super::lxc("ip=dhcp,bridge=vmbr0,name=eth0,hwaddr=BC:24:11:00:00:01");
        assert_eq!(card, "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth");
    }
}
