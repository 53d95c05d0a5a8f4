//! temp
#[tokio::main]
async fn main() {
    let lab = lab::Lab::start(lab::Options { latency: false, ..lab::Options::default() }).await.unwrap();
    println!("{} {} {} {}", lab.url(), lab.full_token(), lab.audit_token(), lab.blind_token());
    println!("CA {}", lab.ca_path().display());
    std::future::pending::<()>().await;
}
