//! Decides who can claim that a call was checked: [`Authorized`] has one constructor, which nothing outside
//! [`authorize`](super) can name.

/// Proof that the checks of [`authorize`](super) passed for what is inside. What sends takes nothing else.
///
/// Who has the parts of a call does not have the proof:
///
/// ```
/// use pvegate::authorize::Authorized;
///
/// fn parts<T>(proof: Authorized<T>) -> T {
///     proof.into_inner()
/// }
/// ```
///
/// ```compile_fail
/// use pvegate::authorize::Authorized;
///
/// fn forged<T>(parts: T) -> Authorized<T> {
///     Authorized(parts)
/// }
/// ```
///
/// ```compile_fail
/// use pvegate::authorize::Authorized;
///
/// fn forged<T>(parts: T) -> Authorized<T> {
///     Authorized::passed(parts)
/// }
/// ```
///
/// One call's proof is not another's, and none lasts for a second call:
///
/// ```compile_fail
/// use pvegate::authorize::Authorized;
///
/// fn exchanged<T>(mut proof: Authorized<T>, other: T) -> Authorized<T> {
///     *proof.get() = other;
///     proof
/// }
/// ```
///
/// ```compile_fail
/// use pvegate::authorize::Authorized;
///
/// fn twice<T: Clone>(proof: Authorized<T>) -> (Authorized<T>, Authorized<T>) {
///     (proof.clone(), proof)
/// }
/// ```
#[derive(Debug)]
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    /// What a check that passed leaves behind.
    pub(super) const fn passed(checked: T) -> Self {
        Self(checked)
    }

    /// What was authorized.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Takes it out, and the proof with it.
    pub fn into_inner(self) -> T {
        self.0
    }
}
