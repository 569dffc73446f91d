//! tests/frontends/objects.rs: objects, functions and streams go from op to op in Rust. tests/abi/objects.c has the ops.
mod adjoin;
use adjoin::{acme, Object, Result, Scalar, Tensor, Unknown};

fn wrong<T>(got: Result<T>, wanted: &str) {
    let told = got.err().expect("an error").message;
    assert!(told.contains(wanted), "{told}");
}

fn main() -> Result<()> {
    adjoin::load_plugin(&std::env::args().nth(1).expect("the plugin"))?;
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3])?;
    let plan: Object = acme::make_plan_with(&x, acme::MakePlanOptions { by: 3 })?;
    assert_eq!(acme::run_plan(&x, &plan.clone())?.to_vec::<f32>()?, [3.0, 6.0, 9.0]);
    assert_eq!(acme::run_any(&x, &plan)?.to_vec::<f32>()?, [3.0, 6.0, 9.0]);
    assert_eq!(acme::run_maybe(&x)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    wrong(acme::run_plan(&x, &acme::make_other(&x)?), "acme::other");
    drop(plan);

    let stream = acme::make_stream(&x)?;
    let told = |s| acme::stream_device_with(&x, acme::StreamDeviceOptions { stream: s });
    assert_eq!((told(Some(&stream))?, told(None)?), (100, -1));
    wrong(told(Some(&acme::make_plan(&x)?)), "argument 'stream'");

    assert_eq!(acme::named(&x)?.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
    let options = acme::NamedOptions { names: None::<Unknown>, dtype: adjoin::INT64 };
    assert_eq!(acme::named_with(&x, options)?.to_vec::<i64>()?, [1, 2, 3]);

    let part = |x: f32| Tensor::from_slice(&[x], &[1]);
    let z = adjoin::complex(&part(1.5)?, &part(-2.0)?)?;
    assert_eq!(adjoin::item(&z)?, Scalar::Complex([1.5, -2.0]));
    let turned = adjoin::mul(&z, Scalar::Complex([0.0, 1.0]))?;
    assert_eq!(adjoin::item(&turned)?, Scalar::Complex([2.0, 1.5]));
    println!("everything holds");
    Ok(())
}
