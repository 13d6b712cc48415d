import { assertEquals, assertMatch, assertNotEquals } from "../assert.ts";
import { entriesOfKeys, generateKey, hashKey, KeyRing, LOCAL_NAMESPACE } from "../../src/policy/api_keys.ts";

Deno.test("hashKey() returns the lower-case hex SHA-256", () => {
  assertEquals(hashKey("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

Deno.test("KeyRing finds the holder of each key, and undefined for any other", () => {
  const ring = new KeyRing([
    { name: "ci", sha256: hashKey("key-of-ci"), policy: "small" },
    { name: "app", sha256: hashKey("key-of-app") },
  ]);
  assertEquals(ring.find("key-of-ci"), { name: "ci", namespace: "key:ci", policy: "small" });
  assertEquals(ring.find("key-of-app"), { name: "app", namespace: "key:app" });
  for (const wrong of ["", "key-of-c", "key-of-cix", "KEY-OF-CI", hashKey("key-of-ci")]) {
    assertEquals(ring.find(wrong), undefined);
  }
  assertEquals(new KeyRing([]).find("anything"), undefined);
});

Deno.test("KeyRing gives every key its own namespace", () => {
  const ring = new KeyRing(entriesOfKeys(["a", "b"]), "c");
  const namespaces = ["a", "b", "c"].map((key) => ring.find(key)?.namespace);
  assertEquals(new Set(namespaces).size, 3);
  assertEquals(namespaces[2], LOCAL_NAMESPACE);
});

Deno.test("KeyRing gives keys of one namespace the same runs, and refuses a key after its retirement", () => {
  let now = Date.parse("2027-01-31T23:59:59Z");
  const ring = new KeyRing(
    [
      { name: "ci", sha256: hashKey("old"), retires_at: "2027-01-31" },
      { name: "ci-2", sha256: hashKey("new"), namespace: "ci", retires_at: "2027-02-01T02:00:00+02:00" },
      { name: "app", sha256: hashKey("app") },
    ],
    undefined,
    () => now,
  );
  const found = () => ["old", "new", "app"].map((key) => ring.find(key)?.namespace);
  assertEquals(found(), ["key:ci", "key:ci", "key:app"]);
  now += 1000;
  assertEquals(found(), [undefined, undefined, "key:app"]);
});

Deno.test("entriesOfKeys() names a key by its hash, not by its position", () => {
  const [a, b] = entriesOfKeys(["a", "b"]);
  assertEquals(entriesOfKeys(["b", "a", "b"]).map(({ name }) => name), [b?.name, a?.name]);
  assertEquals(entriesOfKeys([]).length, 0);
  assertMatch(a?.name ?? "", /^env-[0-9a-f]{12}$/);
});

Deno.test("generateKey() makes keys of 256 random bits that fit a header", () => {
  const key = generateKey();
  assertMatch(key, /^pk_[A-Za-z0-9_-]{43}$/);
  assertNotEquals(generateKey(), key);
});
