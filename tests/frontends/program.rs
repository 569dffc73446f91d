//! tests/frontends/program.rs: a captured program is run from Rust.
mod adjoin;
use adjoin::{Program, Result, Tensor};

fn main() -> Result<()> {
    let model = Program::load(&std::env::args().nth(1).expect("the program"))?;
    let x = Tensor::from_slice(&[1f32, -1.0, 2.0, 0.5], &[2, 2])?;
    println!("{:?}", model.run(&[&x])?[0].to_vec::<f32>()?);
    let wrong = model.run(&[]).err().expect("an error").message;
    assert!(wrong.contains("0 inputs"), "{wrong}");
    assert!(Program::load("none.aj").err().expect("an error").message.contains("none.aj"));
    Ok(())
}
