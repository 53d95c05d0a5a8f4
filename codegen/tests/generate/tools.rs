//! x
#[test]
fn timing() {
    use std::time::Instant;
    let real = crate::schema::real();
    let t = Instant::now(); let table = real.table("network.toml"); println!("parse {:?}", t.elapsed());
    let t = Instant::now(); let text = toml::to_string(&table).unwrap(); println!("write {:?}", t.elapsed());
    let t = Instant::now(); let _o = pvegate_codegen::overlay::Overlay::read(&[("network.toml".to_owned(), text)].into()).unwrap(); println!("read {:?}", t.elapsed());
    let t = Instant::now(); let _o = real.overlay.clone(); println!("clone {:?}", t.elapsed());
    let t = Instant::now(); let _o = pvegate_codegen::join(&real.pinned, &real.overlay).unwrap(); println!("join {:?}", t.elapsed());
    let t = Instant::now(); let _o = pvegate_codegen::output(&real.model); println!("output {:?}", t.elapsed());
}
