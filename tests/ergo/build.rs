//! Generates the codec from the schema that the exchange's own codec is written against.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ergo_sbe::GenerationConfig::new("exchange")
        .with_domain_objects(ergo_sbe::DomainVarData::Bytes)
        .with_dispatch(false)
        .with_display_debug(false)
        .with_meta_attributes(false);
    ergo_sbe::generate_to_out_dir("../../sim/schema/exchange.xml", config)?;
    Ok(())
}
