//! Components written byte by byte, with any names at their boundary and nothing within.

/// A component that imports an empty instance under each name, and exports the first of them under others.
pub(super) fn component(imports: &[&str], exports: &[&str]) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    // Type 0: an instance without exports.
    section(&mut bytes, 7, &[0x01, 0x42, 0x00]);
    let import = |name: &str| [external_name(name), vec![0x05, 0x00]].concat();
    section(&mut bytes, 10, &list(imports, import));
    // Instance 0, its type not narrowed.
    let export = |name: &str| [external_name(name), vec![0x05, 0x00, 0x00]].concat();
    section(&mut bytes, 11, &list(exports, export));
    bytes
}

fn section(bytes: &mut Vec<u8>, id: u8, content: &[u8]) {
    bytes.push(id);
    bytes.extend(length(content.len()));
    bytes.extend(content);
}

fn list(names: &[&str], item: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    let items = names.iter().flat_map(|name| item(name));
    length(names.len()).into_iter().chain(items).collect()
}

fn external_name(name: &str) -> Vec<u8> {
    [vec![0x00], length(name.len()), name.as_bytes().to_vec()].concat()
}

/// LEB128, at most two bytes.
fn length(value: usize) -> Vec<u8> {
    assert!(value < 1 << 14);
    let (low, high) = ((value & 0x7f) as u8, (value >> 7) as u8);
    if high == 0 { vec![low] } else { vec![low | 0x80, high] }
}
