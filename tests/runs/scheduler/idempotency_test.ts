import { Idempotency } from "../../../src/runs/scheduler/idempotency.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { CALLER } from "../../support/runs.ts";

const never = () => Promise.reject(new Error("no run is stored"));

Deno.test("a request with the key of one in progress waits for it, and with another body is refused at once", async () => {
  const idempotency = new Idempotency(new MemoryStore());
  const first = Promise.withResolvers<string>();
  const sent = { key: "k", body_hash: "a" };
  const one = idempotency.once(CALLER, sent, () => first.promise, never);
  const two = idempotency.once(CALLER, sent, () => Promise.resolve("run of the second"), never);
  await assertRejects(
    () => idempotency.once(CALLER, { ...sent, body_hash: "b" }, () => Promise.resolve("run"), never),
    Error,
    "it was used with another request body",
  );
  first.reject(new Error("refused"));
  await assertRejects(() => one, Error, "refused");
  assertEquals(await two, "run of the second");
});

Deno.test("callers whose names contain a slash do not share keys", async () => {
  const store = new MemoryStore();
  const idempotency = new Idempotency(store);
  const request = (namespace: string, key: string) => {
    const [caller, sent] = [{ ...CALLER, namespace }, { key, body_hash: `${namespace} ${key}` }];
    const create = async () => {
      await store.commit([idempotency.put(caller, sent, namespace, 1e15)]);
      return namespace;
    };
    return idempotency.once(caller, sent, create, (run_id) => Promise.resolve(`found ${run_id}`));
  };
  assertEquals(await request("key:team", "app/k"), "key:team");
  assertEquals(await request("key:team/app", "k"), "key:team/app");
  assertEquals(await request("key:team%2Fapp", "k"), "key:team%2Fapp");
  assertEquals(await request("key:team/app", "k"), "found key:team/app");
});
