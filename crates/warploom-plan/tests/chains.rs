//! Chains: those that fit compile and become pipelines; those that do not are compile errors that
//! people can read.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use warploom_core::DType;
use warploom_core::memory::{CudaDevice, Host};
use warploom_kernels::op::{DTypeRule, Fallback, Gives, ops};
use warploom_plan::chain::{Array, Chain, Flowing, Step, Table, Tap, op};
use warploom_plan::pipeline::{self, OpUse};
use warploom_plan::{Options, Pipeline, Sources, compile};

#[test]
fn chains_that_do_not_fit_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/chains/*.rs");
}

#[test]
fn a_chain_is_the_pipeline_one_would_write() {
    let chain = Chain::<u16>::new("nuclei");
    let image = chain.tap();
    let chain = chain
        .then("soft", op::gaussian().with("sigma", 2.0))
        .then("mask", op::threshold_otsu());
    let mask = chain.tap();
    let chain = chain
        .then("labels", op::label_box())
        .write("labels.tif")
        .then("cells", op::label_statistics(&image))
        .write("cells.csv");
    let written = r#"
        name = "nuclei"
        [[step]]
        name = "soft"
        op = "gaussian"
        sigma = 2.0
        input = "image"
        memory = "host"
        [[step]]
        name = "mask"
        op = "threshold_otsu"
        input = "soft"
        memory = "host"
        [[step]]
        name = "labels"
        op = "label_box"
        input = "mask"
        memory = "host"
        [[step]]
        name = "cells"
        op = "label_statistics"
        input = ["labels", "image"]
        memory = "host"
        [[output]]
        of = "labels"
        write = "labels.tif"
        [[output]]
        of = "cells"
        write = "cells.csv"
    "#;
    assert_eq!(*chain.pipeline(), Pipeline::from_toml(written).unwrap());
    let sources = Sources::plane(DType::U16, 64, 64);
    let plan = chain.compile(&sources, None, &Options::default()).unwrap();
    let same = compile(chain.pipeline(), &sources, None, &Options::default());
    assert_eq!(plan, same.unwrap());
    // A value that has a name can be read again, by a step that takes it.
    let holes: Chain<u16, Array<u8, Host>> = chain.back_to(&mask).then("holes", op::binary_not());
    assert_eq!(
        holes.pipeline().steps.last().unwrap().inputs[0].value,
        "mask"
    );
}

#[test]
fn memory_of_a_type_is_memory_of_the_step() {
    let chain = Chain::<u8>::new("p")
        .to::<CudaDevice>()
        .then("a", op::median_box().with("radius", 1_i64))
        .then("b", op::cast::<f64, _, _>())
        .to::<Host>()
        .then("c", op::sqrt());
    let _: &Chain<u8, Array<f64, Host>> = &chain;
    let memory: Vec<&str> = chain
        .pipeline()
        .steps
        .iter()
        .map(|step| step.whereabouts.memory.as_ref().unwrap().value.as_str())
        .collect();
    assert_eq!(memory, ["cuda.device", "cuda.device", "host"]);
}

/// A step of one's own, which says something else than it does.
struct Boast;

impl Step for Boast {
    type In = Array<u16, Host>;
    type Out = Array<u8, Host>;

    fn step(self, name: &str, from: &str) -> pipeline::Step {
        pipeline::Step::new(name, OpUse::new("sqrt")).reads([from])
    }
}

#[test]
fn types_that_are_not_true_are_refused() {
    let chain = Chain::<u16>::new("p").then("boast", Boast);
    let options = Options::default();
    let refusal = chain.compile(&Sources::plane(DType::U16, 8, 8), None, &options);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal[0].code.to_string(), "WL0314");
    insta::assert_snapshot!(refusal[0]);
    let refusal = chain.compile(&Sources::plane(DType::F32, 8, 8), None, &options);
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal[0].code.to_string(), "WL0317");
    insta::assert_snapshot!(refusal[0]);
}

/// The steps of a whole catalogue, each with what its type says it gives of u16, and of f64.
macro_rules! catalogue {
    ($chain:ident, $tap:ident, $other:ident: $($name:ident($($more:ident),*))*) => {{
        let mut said: Vec<(&str, Pipeline, Result<_, _>)> = Vec::new();
        $(
            let step = op::$name($(catalogue!(@ $more $tap $other)),*);
            let chain = $chain.clone().then("x", with_needed(stringify!($name), step));
            let records = sources(&chain);
            let made = chain.compile(&records, None, &Options::default());
            said.push((stringify!($name), chain.pipeline().clone(), made));
        )*
        said
    }};
    (@ tap $tap:ident $other:ident) => { &$tap };
    (@ other $tap:ident $other:ident) => { &$other };
}

fn sources<T, V>(_: &Chain<T, V>) -> Sources
where
    T: warploom_plan::chain::Pixel,
    V: Flowing,
{
    let image = warploom_kernels::ImageType::stack(T::DTYPE, 6, 24, 20);
    let kernel = warploom_kernels::ImageType::stack(DType::F32, 3, 3, 3);
    Sources::new(image).constant("kernel", kernel)
}

/// With values for the parameters that have no default.
fn with_needed<In, Out>(name: &str, mut step: op::Op<In, Out>) -> op::Op<In, Out> {
    let info = ops().find(|op| op.name == name).unwrap();
    for param in info
        .params()
        .filter(|param| param.fallback == Fallback::Required)
    {
        step = match param.name {
            "q" if name == "percentiles" => step.with("q", [1_i64, 99]),
            "type" => step,
            "start" => step.with("start", [0_i64, 0, 0]),
            "stop" => step.with("stop", [2_i64, 9, 9]),
            "matrix" => step.with("matrix", "1,0,0,0,1,0,0,0,1"),
            other => step.with(other, 1_i64),
        };
    }
    step
}

/// Every operation as a step, of records of one type; gives those that were told wrong.
macro_rules! of_type {
    ($pixel:ty) => {{
        let chain = Chain::<$pixel>::new("p");
        let (chain, kernel): (_, Tap<Array<f32, Host>>) = chain.constant("kernel", "kernel.npy");
        let image = chain.tap();
        let mut all = catalogue!(chain, image, kernel:
            median_box() median_sphere() percentile_box() minimum_box() maximum_box()
            minimum_sphere() maximum_sphere() opening_box() closing_box() top_hat_box()
            bottom_hat_box() opening_sphere() closing_sphere() top_hat_sphere()
            bottom_hat_sphere() flip_x() flip_y() flip_z() bin_max() resize_nearest() pad()
            max_z() min_z() crop() transpose_xy() transpose_xz() transpose_yz()
            affine_intensity() power() gamma() exp() log1p() sqrt() abs() invert() clip()
            minmax_normalize() percentile_normalize() subtract_gaussian_background()
            divide_gaussian_background() subtract_rolling_ball() unsharp() gaussian() mean_box()
            mean_sphere() variance_box() std_box() sobel() gradient_x() gradient_y() gradient_z()
            laplace_diamond() laplace_box() difference_of_gaussian() laplacian_of_gaussian()
            shift_linear() rotate_linear() affine_linear() distance_transform() bin_mean()
            bin_sum() resize_linear() sum_z() mean_z() std_z() median_z()
            greater() greater_equal() less() less_equal() equal() between() threshold_otsu()
            threshold_triangle() threshold_li() threshold_yen() threshold_isodata()
            threshold_mean() threshold_local() local_maxima() binary_erode() binary_dilate()
            binary_open() binary_close() binary_not() fill_holes()
            label_box() label_diamond() argmax_z() histogram() totals() percentiles()
            mask_image(tap) convolve(other) fft_convolve(other) richardson_lucy(other)
            binary_and(tap) binary_or(tap) binary_xor(tap) phase_shift(tap)
            add_images(tap) subtract_images(tap) multiply_images(tap) divide_images(tap)
            absolute_difference(tap) flat_field(tap) blend_two(tap)
            maximum_images(tap) minimum_images(tap) select(tap, tap));
        let labels = chain.then("labels", op::label_box());
        all.extend(catalogue!(labels, image, kernel:
            remove_small_labels() remove_large_labels() clear_border() expand_labels()
            relabel_sequential() label_statistics(tap) watershed(tap, tap)));
        let cast = labels.then("x", op::cast::<i16, _, _>());
        let made = cast.compile(&sources(&cast), None, &Options::default());
        all.push(("cast", cast.pipeline().clone(), made));
        all
    }};
}

#[test]
fn every_operation_is_a_step_and_its_type_is_true() {
    let mut wrong = Vec::new();
    let mut told = Vec::new();
    for (name, pipeline, made) in of_type!(u16).into_iter().chain(of_type!(f64)) {
        if let Err(findings) = made {
            wrong.push(format!("{name}: {} in {pipeline:?}", findings[0]));
        }
        told.push(name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for op in ops() {
        assert!(told.contains(&op.name), "{} is no step", op.name);
        // What comes out decides which list it is in; a rule that no list has would be told wrong.
        let known = match op.gives {
            Gives::Image { dtype, .. } => {
                !matches!(dtype, DTypeRule::Param(name) if name != "type")
            }
            Gives::Scalars(_) | Gives::Table(_) => true,
        };
        assert!(known, "{}", op.name);
    }
    let _: Option<Tap<Table<Host>>> = None;
}
