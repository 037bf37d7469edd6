//! One template per schema, one clone per test.

use super::{PASSWORD, PASSWORD_COST, PEOPLE};
use domain::{ids::UserId, vocabulary::Role};
use lazaret::{app::passwords::Passwords, store};
use sha2::{Digest as _, Sha256};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool, postgres::PgConnectOptions};

/// Names the lock under which the template is made.
const TEMPLATE_LOCK: i64 = 0x006c_617a_6172_6574;

/// A clone of the template; dropped with it.
pub(crate) struct Database {
    admin: PgConnectOptions,
    name: String,
}

impl Database {
    pub(crate) async fn clone_template() -> Self {
        let admin = admin();
        let template = template(&admin).await;
        let name = format!("lazaret_test_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect_with(&admin).await.unwrap();
        run(&mut connection, format!("CREATE DATABASE {name} TEMPLATE {template} OWNER lazaret_owner")).await;
        connection.close().await.unwrap();
        Self { admin, name }
    }

    /// As the application role.
    pub(crate) fn app_url(&self) -> String {
        self.admin.clone().username("lazaret_app").database(&self.name).to_url_lossy().to_string()
    }

    /// As the owner.
    pub(crate) fn owner_pool(&self) -> PgPool {
        let options = self.admin.clone().username("lazaret_owner").database(&self.name);
        sqlx::postgres::PgPoolOptions::new().max_connections(3).connect_lazy_with(options)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.name.clone());
        super::broker::on_another_thread(async move {
            let mut connection = PgConnection::connect_with(&admin).await.unwrap();
            run(&mut connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        });
    }
}

fn admin() -> PgConnectOptions {
    let url = std::env::var("LAZARET_TEST_DATABASE_URL").expect(
        "LAZARET_TEST_DATABASE_URL: a throw-away Postgres as superuser; `cargo xtask test integration` starts one",
    );
    url.parse().unwrap()
}

async fn run(connection: &mut PgConnection, statement: String) {
    connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
}

/// Makes the template unless another process of this schema did.
async fn template(admin: &PgConnectOptions) -> String {
    let mut hash = Sha256::new();
    for migration in store::MIGRATIONS.iter() {
        hash.update(&*migration.checksum);
    }
    for (name, roles, machine) in PEOPLE {
        hash.update(format!("{name} {roles:?} {machine}"));
    }
    let name = format!("lazaret_template_{}", &hex::encode(hash.finalize())[..16]);
    let mut connection = PgConnection::connect_with(admin).await.unwrap();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut connection).await.unwrap();
    // marked as a template when it is finished: a half-made one isn't
    let finished: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)")
            .bind(&name)
            .fetch_one(&mut connection)
            .await
            .unwrap();
    if !finished {
        make(admin, &mut connection, &name).await;
    }
    // closing the connection unlocks
    connection.close().await.unwrap();
    name
}

async fn make(admin: &PgConnectOptions, connection: &mut PgConnection, name: &str) {
    for role in ["lazaret_owner LOGIN CREATEDB CREATEROLE", "lazaret_app LOGIN"] {
        let only = role.split(' ').next().unwrap();
        run(connection, format!("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{only}') THEN CREATE ROLE {role}; END IF; END $$")).await;
    }
    run(connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    run(connection, format!("CREATE DATABASE {name} OWNER lazaret_owner")).await;
    let owner = admin.clone().username("lazaret_owner").database(name);
    store::migrate(owner.to_url_lossy().as_str()).await.unwrap();
    let pool = PgPool::connect_with(owner).await.unwrap();
    for (username, roles, machine) in PEOPLE {
        add_person(&pool, username, roles, machine).await;
    }
    pool.close().await;
    run(connection, format!("ALTER DATABASE {name} IS_TEMPLATE true")).await;
}

pub(crate) async fn add_person(pool: &PgPool, username: &str, roles: &[Role], machine: bool) -> UserId {
    let hash = Passwords::new(PASSWORD_COST).unwrap().hash(PASSWORD.to_owned()).await.unwrap();
    let id = uuid::Uuid::now_v7();
    let roles: Vec<String> = roles.iter().map(ToString::to_string).collect();
    sqlx::query("INSERT INTO users (id, username, password_hash, roles, machine) VALUES ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(username)
        .bind(hash)
        .bind(&roles)
        .bind(machine)
        .execute(pool)
        .await
        .unwrap();
    UserId(id)
}
