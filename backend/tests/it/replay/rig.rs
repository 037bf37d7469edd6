//! A ward with workers behind its queue: a consumer that keeps a ledger of its own, and the effect that a probe reads.

use crate::{
    cohorts::ward::{Letter, Ward, approve},
    harness::{Person, eventually},
};
use domain::{
    api::{Cohort, CohortItem, Page, Replay},
    ids::{CohortId, QuarantineId},
    vocabulary::{CohortState, ItemState},
};
use futures::StreamExt as _;
use lapin::{options, types::FieldTable};
use lazaret::workers::replay::{Replays, Stepped};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What the test's own consumer saw: redrive id and properties of every delivery.
pub(crate) type Ledger = Arc<Mutex<Vec<(String, lapin::BasicProperties)>>>;

pub(crate) struct Rig {
    pub(crate) ward: Ward,
    pub(crate) mara: Person,
    pub(crate) replays: Replays,
    _probe: tempfile::NamedTempFile,
}

impl Rig {
    pub(crate) async fn open() -> Self {
        let ward = Ward::open().await;
        let probe = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(probe.path(), &ward.app.app.config.database_url).unwrap();
        ward.sql("CREATE TABLE effects (job text PRIMARY KEY, state text NOT NULL, redrive text)").await;
        ward.sql("GRANT SELECT ON effects TO lazaret_app").await;
        let definition = json!({ "kind": "sql", "database": format!("file:{}", probe.path().display()),
            "statement": "SELECT state, redrive FROM effects WHERE job = $1", "redrive_id_column": "redrive" });
        sqlx::query("UPDATE probes SET definition = $1").bind(definition).execute(ward.app.owner()).await.unwrap();
        let mara = ward.app.responder().await;
        let replays = Replays::named(&ward.app.app, "one");
        Self { ward, mara, replays, _probe: probe }
    }

    /// An expansion under way at 5 a second, with a worker behind it.
    pub(crate) async fn under_way(many: usize) -> (Self, CohortId, Ledger) {
        let mut rig = Self::open().await;
        let ids = rig.letters(many).await;
        let ledger = rig.worker().await;
        let mut plan = rig.plan(&ids);
        plan["expansion"]["start_per_s"] = json!(5);
        plan["expansion"]["max_per_s"] = json!(5);
        let cohort = rig.approved(plan).await;
        rig.passed(cohort).await;
        rig.act(cohort, "expand").await;
        while rig.count(cohort, ItemState::Scheduled).await > i64::try_from(many).unwrap() - 3 {
            rig.step().await;
        }
        (rig, cohort, ledger)
    }

    /// A plan that goes as fast as a test wants.
    pub(crate) fn plan(&self, ids: &[QuarantineId]) -> Value {
        let mut plan = self.ward.plan(ids);
        plan["canary"]["wait_s"] = json!(5);
        plan["expansion"]["start_per_s"] = json!(500);
        plan["expansion"]["max_per_s"] = json!(500);
        plan["expansion"]["max_in_flight"] = json!(200);
        plan["expansion"]["verify_sample_percent"] = json!(100);
        plan
    }

    /// Drafted, inspected, submitted, approved by another.
    pub(crate) async fn approved(&self, plan: Value) -> CohortId {
        let canaries: Vec<QuarantineId> = serde_json::from_value(plan["canary"]["items"].clone()).unwrap();
        let cohort = self.ward.draft(&self.mara, plan).await;
        for canary in canaries {
            self.ward.inspect(&self.mara, canary).await;
        }
        let path = format!("/cohorts/{}/submit", cohort.row.id);
        let cohort: Cohort = self.mara.act(&path, json!({})).await.ok();
        approve(&self.ward.app.approver().await, &cohort).await.is(200);
        cohort.row.id
    }

    /// Acts, confirming whatever count the server names.
    pub(crate) async fn act(&self, cohort: CohortId, act: &str) {
        let path = format!("/cohorts/{cohort}/{act}");
        let reply = self.mara.act(&path, json!({ "reason": "test" })).await;
        if reply.status == 202 {
            return;
        }
        let problem = reply.problem(409, "count_mismatch");
        let count = problem.facts.unwrap()["count"].clone();
        self.mara.act(&path, json!({ "reason": "test", "confirm_count": count })).await.is(202);
    }

    /// A worker that makes the effect, carrying the redrive id, and acknowledges.
    pub(crate) async fn worker(&self) -> Ledger {
        let ledger = Ledger::default();
        let connection = self.ward.vhost.connect().await;
        let channel = connection.create_channel().await.unwrap();
        let tag = "worker".into();
        let mut deliveries = channel
            .basic_consume("orders".into(), tag, options::BasicConsumeOptions::default(), FieldTable::default())
            .await
            .unwrap();
        let (pool, seen) = (self.ward.app.owner().clone(), ledger.clone());
        tokio::spawn(async move {
            let _connection = connection;
            while let Some(Ok(delivery)) = deliveries.next().await {
                let redrive = redrive_of(&delivery.properties);
                seen.lock().unwrap().push((redrive.clone(), delivery.properties.clone()));
                let job = "INSERT INTO effects (job, state, redrive) SELECT convert_from(job_id, 'UTF8'), 'sent', $1
                           FROM cohort_items WHERE redrive_id = $1::uuid ON CONFLICT DO NOTHING";
                if sqlx::query(job).bind(&redrive).execute(&pool).await.is_err() {
                    return;
                }
                delivery.ack(options::BasicAckOptions::default()).await.unwrap();
            }
        });
        ledger
    }

    pub(crate) async fn step(&mut self) -> Vec<Stepped> {
        self.replays.try_step().await.unwrap().into_iter().map(|(_, did)| did).collect()
    }

    /// Steps until the cohort is there.
    pub(crate) async fn until(&mut self, cohort: CohortId, wanted: CohortState) -> Cohort {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(25);
        loop {
            let shown = self.show(cohort).await;
            if shown.row.state == wanted {
                return shown;
            }
            let did = self.step().await;
            assert!(
                tokio::time::Instant::now() < deadline,
                "never {wanted}: {:?}, {:?}, {did:?}, {:?}",
                shown.row.state,
                shown.row.state_reason,
                shown.row.counts
            );
            tokio::task::yield_now().await;
        }
    }

    /// The effect of the canary that is out, with its redrive id.
    pub(crate) async fn prove_canary(&self) {
        let effect = "INSERT INTO effects SELECT convert_from(job_id, 'UTF8'), 'sent', redrive_id::text
                      FROM cohort_items WHERE canary AND redrive_id IS NOT NULL ON CONFLICT DO NOTHING";
        self.ward.sql(effect).await;
    }

    /// Canary published, proved and passed.
    pub(crate) async fn passed(&mut self, cohort: CohortId) {
        self.act(cohort, "canary").await;
        self.until(cohort, CohortState::CanaryPassed).await;
    }

    pub(crate) async fn show(&self, cohort: CohortId) -> Cohort {
        self.mara.get(&format!("/cohorts/{cohort}")).await.ok()
    }

    pub(crate) async fn replay(&self, cohort: CohortId) -> Replay {
        self.mara.get(&format!("/cohorts/{cohort}/replay")).await.ok()
    }

    pub(crate) async fn items(&self, cohort: CohortId) -> Vec<CohortItem> {
        self.mara.get(&format!("/cohorts/{cohort}/items?limit=200")).await.ok::<Page<CohortItem>>().items
    }

    pub(crate) async fn count(&self, cohort: CohortId, state: ItemState) -> i64 {
        self.show(cohort).await.row.counts.iter().find(|count| count.state == state).map_or(0, |count| count.count)
    }

    pub(crate) async fn letters(&self, many: usize) -> Vec<QuarantineId> {
        self.ward.hold_many("job", many).await
    }

    pub(crate) async fn letter(&self, letter: Letter) -> QuarantineId {
        self.ward.hold(letter).await
    }

    /// Messages on the queue, by a passive look of the test's own.
    pub(crate) async fn on_queue(&self) -> u32 {
        let channel = self.ward.vhost.connect().await.create_channel().await.unwrap();
        let passive = options::QueueDeclareOptions { passive: true, ..Default::default() };
        channel.queue_declare("orders".into(), passive, FieldTable::default()).await.unwrap().message_count()
    }

    /// So many deliveries, each redrive id once.
    pub(crate) async fn delivered_once(&self, ledger: &Ledger, many: usize) {
        eventually("every delivery", || async { (ledger.lock().unwrap().len() >= many).then_some(()) }).await;
        let mut ids: Vec<String> = ledger.lock().unwrap().iter().map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!((ids.len(), ledger.lock().unwrap().len()), (many, many), "published twice");
    }
}

fn redrive_of(properties: &lapin::BasicProperties) -> String {
    match properties.headers().as_ref().and_then(|headers| headers.inner().get("lazaret-redrive-id")) {
        Some(lapin::types::AMQPValue::LongString(id)) => id.to_string(),
        _ => String::new(),
    }
}
