//! build.rs: where libadjoin lies, asked of the `adjoin` on the PATH.
fn main() {
    let told = std::process::Command::new("adjoin").args(["config", "--libdir"]).output().expect("no `adjoin` on the PATH");
    let folder = String::from_utf8(told.stdout).expect("a folder in UTF-8");
    println!("cargo:rustc-link-search={}", folder.trim());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.trim());
}
