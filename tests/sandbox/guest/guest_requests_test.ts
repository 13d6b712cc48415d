/**
 * What a guest may ask and do is read as a stranger's word: whatever it is, the session stands as it was, or
 * says no.
 */
import fc from "fast-check";
import { SessionState } from "../../../src/kernel/session_state.ts";
import { EmissionTable, serveRequest } from "../../../src/sandbox/guest/guest_requests.ts";
import { ObjectTable } from "../../../src/sandbox/guest/object_table.ts";
import { applyNotification, GuestMounts, type GuestParts } from "../../../src/sandbox/guest/guest_mounts.ts";
import type { Notification } from "../../../src/sandbox/protocol.ts";
import { createTestCoordinator, TestCoordinator } from "../../../src/testing/coordinator.ts";
import type { Emission } from "../../../src/sdk/types.ts";
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "../../assert.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import { ROOMY } from "../../support/sandbox.ts";

/** The host's side of one module, whose guest answers nothing. */
function sides(
  coordinator: TestCoordinator = new TestCoordinator({ session_state: new SessionState({}, 65_536).view }),
) {
  const objects = new ObjectTable(() => Promise.resolve());
  const parts: GuestParts = {
    module: "m",
    type: "tool",
    limits: ROOMY,
    objects,
    coordinator: () => coordinator,
    warn() {},
  };
  const apply = (notification: Notification) => applyNotification(notification, coordinator, parts);
  return { coordinator, objects, apply, parts, mounts: new GuestMounts(parts) };
}

const words = fc.constantFrom(
  ...["__proto__", "constructor", "prototype", "then", "toString", "", "tools", "hooks", "emit", "register"],
  ...["state", "deleted", "capability", "contributor", "cleanup", "system_prompt", "dispose", "unregister"],
);
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, 1, -1, 1.5),
    words,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(words, tie("value")), { maxLength: 4 }).map(fromPairs),
  ),
})).value;

/** An object as `JSON.parse` makes it: `__proto__` is a key like any other. */
function fromPairs(pairs: readonly (readonly [string, unknown])[]): unknown {
  return JSON.parse(
    `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`,
  );
}

const KINDS = [
  ...["register", "dispose", "unregister", "default_fields", "cleanup", "capability", "contributor"],
  ...["state", "deleted", "cancel", "reset_turn", "system_prompt", "other"],
];
const FIELDS = ["ref", "event", "options", "name", "value", "refs", "channel", "key", "fields", "immediate"];
const anyEffect = fc.tuple(
  fc.constantFrom(...KINDS),
  fc.array(fc.tuple(fc.constantFrom(...FIELDS), anything), { maxLength: 6 }),
).map(([e, fields]) => fromPairs([["e", e], ...fields]));

function untouched(): void {
  const { polluted, execute } = {} as { polluted?: unknown; execute?: unknown };
  assertEquals([polluted, execute, Object.keys(Object.prototype)], [undefined, undefined, []]);
  assertEquals(Object.getPrototypeOf({}), Object.prototype);
}

Deno.test("applyNotification() applies any notification or throws a TypeError", () => {
  const names = Object.getOwnPropertyNames(Object.prototype).length;
  fc.assert(
    fc.property(fc.array(fc.oneof(anyEffect, anything), { maxLength: 6 }), (given) => {
      const { apply, coordinator } = sides();
      for (const effect of given) {
        try {
          apply(effect as Notification); // a stranger's word for one
        } catch (error) {
          assert(error instanceof Error);
        }
      }
      assertEquals(Object.getPrototypeOf(coordinator.session_state), null);
    }),
    { numRuns: 500 },
  );
  untouched();
  assertEquals(Object.getOwnPropertyNames(Object.prototype).length, names);
});

Deno.test("answer() answers any question or throws an Error", async () => {
  const targets = fc.oneof(
    fc.constantFrom(
      ...[
        "hooks",
        "context",
        "provider/x",
        "provider/__proto__",
        "tool/echo",
        "tool/constructor",
        "coordinator",
      ],
      ...["capability", "clock", "tool", "toString", "__proto__/__proto__"],
    ),
    words,
  );
  const methods = fc.oneof(
    words,
    fc.constantFrom(
      ...[
        "emitAndCollect",
        "addMessage",
        "setMessages",
        "getMessagesForRequest",
        "clear",
        "complete",
        "execute",
      ],
      ...["unmount", "collectContributions", "processHookResult", "listModels", "after"],
    ),
  );
  await fc.assert(
    fc.asyncProperty(targets, methods, fc.array(anything, { maxLength: 4 }), async (target, method, args) => {
      const request = { target, method, args, signal: AbortSignal.abort(), onPiece() {} };
      try {
        const coordinator = createTestCoordinator();
        const handles = { coordinator, parts: coordinator };
        await serveRequest(handles, request, new EmissionTable(), () => Promise.resolve());
      } catch (error) {
        assert(error instanceof Error || error instanceof DOMException);
      }
    }),
    { numRuns: 500 },
  );
  untouched();
});

Deno.test("GuestMounts mounts any stranger's word for an object, or says what is wrong with it", async () => {
  const points = fc.oneof(words, fc.constantFrom("tools", "providers", "context", "orchestrator", "session"));
  const shapes = fc.oneof(
    anything,
    fc.record({
      name: anything,
      ref: fc.oneof(fc.nat(9), anything),
      shape: fc.record({ data: anything, methods: anything }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(points, shapes, anything, async (point, given, answered) => {
      const { mounts, coordinator } = sides();
      await mounts.mount(coordinator, point, given as never).catch((error) => assert(error instanceof Error));
      for (const kind of ["function", "object", "instance", "other", "none"]) {
        try {
          mounts.returned(
            { ref: 1, rest: 2, shape: answered, rest_shape: answered, kind, value: answered } as never,
          );
        } catch (error) {
          assert(error instanceof Error);
        }
      }
    }),
    { numRuns: 500 },
  );
  untouched();
});

Deno.test("ObjectTable: an undone object frees its place", () => {
  const { objects } = sides();
  const undone: number[] = [];
  for (let ref = 1; ref <= 2_000; ref++) {
    const key = objects.nextKey("handler/x");
    objects.bind(key, ref);
    objects.onUndo(key, () => undone.push(ref));
    objects.undo(ref);
  }
  assertEquals(undone.length, 2_000);
  for (let ref = 1; ref <= 256; ref++) objects.bind(`k${ref}`, ref);
  objects.bind("k1", 7);
  assertThrows(
    () => objects.bind("one more", 1),
    PreampError,
    "it registered or mounted more than 256 objects",
  );
  for (const ref of [undefined, null, 1.5, "1", {}]) assertThrows(() => objects.bind("k1", ref), TypeError);
});

Deno.test("ObjectTable: a failed call that is not awaited is no unhandled rejection", async () => {
  const objects = new ObjectTable(() => Promise.reject(new Error("it is gone")));
  const call = objects.bind("k", 1);
  void call("x", [], { max_bytes: 1 });
  await assertRejects(() => call("x", [], { max_bytes: 1 }), Error, "it is gone");
});

Deno.test("Emissions knows the emission that is meant, and keeps a bounded number of them", () => {
  const emissions = new EmissionTable();
  const first = { action: "ask_user", reason: null } as Emission;
  const { number } = emissions.add(first);
  assertStrictEquals(emissions.resolve(number, { action: "continue" }), first);
  assertEquals(first.action, "continue");
  assertEquals(emissions.resolve(99, { action: "deny" }), { action: "deny" } as never);
  assertEquals(emissions.resolve(null, 5), {} as never);
  for (let n = 0; n < 256; n++) emissions.add({ ...first });
  assert(emissions.resolve(number, {}) !== first);
});

Deno.test("applyNotification() bounds what a guest may leave in the session", () => {
  const notifications: ((n: number) => Notification[])[] = [
    (n) => [{ e: "capability", name: `c${n}`, value: n, refs: {} }],
    // one that is undone at once leaves its name
    (n) => [{ e: "register", ref: 1, event: `event:${n}`, options: {} }, { e: "dispose", ref: 1 }],
  ];
  for (const make of notifications) {
    const { apply } = sides();
    const applyMany = () => {
      for (let n = 0; n < 20_000; n++) make(n).forEach(apply);
    };
    assertThrows(applyMany, PreampError, "more than");
  }
});

Deno.test("applyNotification() refuses names and capabilities that are too large", () => {
  const long = "x".repeat(300_000);
  const cases: Notification[] = [
    { e: "register", ref: 1, event: long, options: {} },
    { e: "contributor", channel: long, name: "n", ref: 1 },
    { e: "contributor", channel: "c", name: long, ref: 1 },
    { e: "capability", name: long, value: 1, refs: {} },
    { e: "capability", name: "c", value: long, refs: {} },
  ];
  for (const notification of cases) {
    const { apply, coordinator } = sides();
    assertThrows(() => apply(notification));
    assertEquals(coordinator.toDict().capabilities, []);
  }
});

Deno.test("GuestMounts keeps one system prompt factory for each context", async () => {
  const names: unknown[] = [];
  const objects = new ObjectTable((_, __, [name]) => Promise.resolve(names.push(name)));
  const { coordinator, parts } = sides();
  const mounts = new GuestMounts({ ...parts, objects });
  const methods = ["addMessage", "getMessages", "getMessagesForRequest", "setMessages", "clear"];
  const shape = { data: {}, methods: [...methods, "setSystemPromptFactory"] };
  await mounts.mount(coordinator, "context", { ref: 1, shape });
  for (const text of ["first", "second"]) {
    coordinator.context!.setSystemPromptFactory!(() => text);
  }
  assertEquals(names.length, 2);
  assertEquals([names[0], await mounts.callFunction(String(names[1]))], [names[1], "second"]);
});
