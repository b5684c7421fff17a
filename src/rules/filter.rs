//! A quick no: most names are nobody's, and first byte and length tell.

/// Which first bytes and lengths occur in a set of names. May say yes to a name that is not in it, never no to one that is.
#[derive(Debug)]
pub struct Filter(Box<[u64; 256]>);

impl Default for Filter {
    fn default() -> Self {
        Self(Box::new([0; 256]))
    }
}

impl<'a> FromIterator<&'a [u8]> for Filter {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(names: I) -> Self {
        let mut filter = Self::default();
        names.into_iter().for_each(|name| filter.add(name));
        filter
    }
}

impl Filter {
    /// Adds a name.
    pub fn add(&mut self, name: &[u8]) {
        if let Some(&first) = name.first() {
            // Bit `length` of the word of the first byte; lengths from 64 on share bits with shorter ones.
            self.0[usize::from(first)] |= 1 << (name.len() & 63);
        }
    }

    /// Whether the name may be in the set.
    #[inline]
    pub fn admits(&self, name: &[u8]) -> bool {
        name.first().is_some_and(|&first| self.0[usize::from(first)] >> (name.len() & 63) & 1 == 1)
    }
}
