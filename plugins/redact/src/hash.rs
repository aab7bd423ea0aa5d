//! Hashes with a salt. The salted beginning is hashed once, at the start.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256's block.
const BLOCK_BYTES: usize = 64;

/// A hash that has taken in its salt.
#[derive(Clone)]
pub(crate) enum Hash {
    /// SHA-256 of the salt and, behind it, the text.
    Salted(Sha256),
    /// HMAC-SHA-256 (RFC 2104), the salt is its key.
    Hmac { inner: Sha256, outer: Sha256 },
}

impl Hash {
    pub(crate) fn salted(salt: &[u8]) -> Self {
        Self::Salted(Sha256::new_with_prefix(salt))
    }

    pub(crate) fn hmac(key: &[u8]) -> Self {
        let mut block = [0; BLOCK_BYTES];
        let digest;
        let key = if key.len() > BLOCK_BYTES {
            digest = Sha256::digest(key);
            digest.as_slice()
        } else {
            key
        };
        for (byte, key) in block.iter_mut().zip(key) {
            *byte = *key;
        }
        Self::Hmac {
            inner: Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36)),
            outer: Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c)),
        }
    }

    /// Appends 64 hexadecimal digits.
    pub(crate) fn write_hex(&self, text: &[u8], into: &mut Vec<u8>) {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let digest = match self {
            Self::Salted(salted) => salted.clone().chain_update(text).finalize(),
            Self::Hmac { inner, outer } => {
                let inner = inner.clone().chain_update(text).finalize();
                outer.clone().chain_update(inner).finalize()
            }
        };
        for byte in digest {
            into.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// The state would give the salt away.
impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Salted(_) => "Salted",
            Self::Hmac { .. } => "Hmac",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(hash: &Hash, text: &[u8]) -> String {
        let mut into = Vec::new();
        hash.write_hex(text, &mut into);
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn sha_256_is_of_salt_and_text() {
        // FIPS 180-2, appendix B.1: "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&Hash::salted(b""), b"abc"), abc);
        assert_eq!(hex(&Hash::salted(b"ab"), b"c"), abc);
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let check = |key: &[u8], text: &[u8], mac: &str| assert_eq!(hex(&Hash::hmac(key), text), mac);
        check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        check(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
    }

    #[test]
    fn the_salt_is_not_printed() {
        assert_eq!(format!("{:?} {:?}", Hash::salted(b"pepper"), Hash::hmac(b"pepper")), "Salted Hmac");
    }
}
