//! `GET /api/v1/openapi.json`: built from the handlers, completed with what holds for all of them.

use axum::{
    http::{HeaderValue, header},
    response::IntoResponse,
};
use std::sync::Arc;
use utoipa::{
    PartialSchema as _,
    openapi::{
        Components, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder,
        path::{Operation, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, SchemaType, Type},
        security::{ApiKey, ApiKeyValue, SecurityScheme},
    },
};

/// What is said before any path.
pub(super) fn base() -> OpenApi {
    let mut components = Components::new();
    components.schemas.insert("Problem".to_owned(), domain::api::Problem::schema());
    components.schemas.insert("FieldError".to_owned(), domain::api::FieldError::schema());
    components.add_security_scheme(
        "session",
        SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(super::SESSION_COOKIE))),
    );
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Lazaret")
                .version("1")
                .description(Some("The one way in: for the browser, the command line, scripts and tests."))
                .build(),
        )
        .components(Some(components))
        .build()
}

/// Adds to every operation what its kind implies: problems, `Idempotency-Key` on acting calls, `If-Match` on changes.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let acting = !["/api/v1/session", "/api/v1/session/confirm", "/api/v1/events"].contains(&path.as_str());
        for operation in [&mut item.get, &mut item.delete].into_iter().flatten() {
            problems(operation);
        }
        for (operation, changes) in [(&mut item.post, false), (&mut item.put, true), (&mut item.patch, true)] {
            let Some(operation) = operation else { continue };
            problems(operation);
            if acting {
                header_parameter(
                    operation,
                    "Idempotency-Key",
                    true,
                    "1 to 200 characters; the same call sent again takes the same key.",
                );
            }
            if changes {
                header_parameter(
                    operation,
                    "If-Match",
                    path != "/api/v1/probes/{name}",
                    "The version that was seen, in quotes.",
                );
            }
        }
    }
    document
}

fn problems(operation: &mut Operation) {
    let problem = ResponseBuilder::new()
        .description("RFC 9457 problem")
        .content(
            "application/problem+json",
            ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name("Problem")))).build(),
        )
        .build();
    operation.responses.responses.entry("default".to_owned()).or_insert(RefOr::T(problem));
}

fn header_parameter(operation: &mut Operation, name: &str, required: bool, description: &str) {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(if required { Required::True } else { Required::False })
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(SchemaType::Type(Type::String))))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

/// The handler of `GET /api/v1/openapi.json`; the document is written once.
pub(super) fn serve(document: &OpenApi) -> impl Fn() -> std::future::Ready<axum::response::Response> + Clone + use<> {
    let json: Arc<str> = document.to_json().unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")).into();
    move || {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        std::future::ready((headers, json.to_string()).into_response())
    }
}
