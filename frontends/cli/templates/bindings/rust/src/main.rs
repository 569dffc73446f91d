//! main.rs: an op of one's own and training in Rust.
//!
//!   adjoin bindgen --lang rust --out src/adjoin.rs && cargo run --offline
mod adjoin;
use adjoin::{nn, sys, tensor_of, Definition, Result, Scalar, Tensor};

/// by * input^2 by plain loops; its derivative by ops, so that it can be differentiated again.
static SQUARE: Definition = Definition {
    schema: "rust::scaled_square(Tensor input, float by=1.0) -> Tensor",
    doc: "by * input^2",
    args: 2,
    kernel: |args, out| {
        let by = unsafe { args[1].v.f } as f32;
        if by < 0.0 {
            panic!("by is negative");
        }
        let squares: Vec<f32> = tensor_of(&args[0]).to_vec::<f32>()?.iter().map(|x| by * x * x).collect();
        out.write(&squares)
    },
    vjp: |grad, args: &[sys::Value]| {
        let twice = adjoin::mul(tensor_of(&args[0]), 2.0 * unsafe { args[1].v.f })?;
        adjoin::mul(grad, &twice)
    },
};

fn scaled_square(x: &Tensor, by: f64) -> Result<Tensor> {
    adjoin::call("rust::scaled_square", &[&x, &by])
}

fn descend(params: &[&Tensor], rate: f64) -> Result<()> {
    adjoin::no_grad(|| {
        for p in params {
            if let Some(g) = p.grad()? {
                adjoin::sub_with_(*p, &g, adjoin::SubOptions { alpha: Scalar::Float(rate) })?;
            }
            p.set_grad(None)?;
        }
        Ok(())
    })
}

fn main() -> Result<()> {
    adjoin::define("rust", &SQUARE)?;
    let w = Tensor::from_slice(&[1f32, -2.0, 3.0], &[3])?.requires_grad(true)?;
    let x = Tensor::from_slice(&[0.5f32, 1.5, -1.0], &[3])?;
    for by in [3.0, 1.0] {
        let loss = adjoin::sum(&scaled_square(&adjoin::mul(&w, &x)?, by)?)?;
        loss.backward()?;
        println!("loss {:?}", loss.to_vec::<f32>()?);
        println!("grad {:?}", w.grad()?.expect("a gradient").to_vec::<f32>()?);
        descend(&[&w], 0.125)?;
        println!("w {:?}", w.to_vec::<f32>()?);
    }
    println!("error {}", adjoin::matmul(&w, &adjoin::ones(&[4])?).err().expect("sizes differ"));
    println!("error {}", scaled_square(&x, -1.0).err().expect("a panic"));

    adjoin::manual_seed(0)?; // a linear layer learns a rule
    let points = adjoin::randn(&[64, 4])?;
    let labels = adjoin::gt(&adjoin::sum_with(&points, adjoin::SumOptions { dim: Some(&[1]), ..Default::default() })?, 0.0)?;
    let labels = adjoin::to_with(&labels, adjoin::ToOptions { dtype: Some(adjoin::INT64), ..Default::default() })?;
    let weight = adjoin::zeros(&[2, 4])?.requires_grad(true)?;
    for step in 0..20 {
        let loss = nn::cross_entropy(&nn::linear(&points, &weight)?, &labels)?;
        loss.backward()?;
        descend(&[&weight], 1.0)?;
        if step % 19 == 0 {
            println!("step {step}: loss {:?}", adjoin::item(&loss)?);
        }
    }
    Ok(())
}
