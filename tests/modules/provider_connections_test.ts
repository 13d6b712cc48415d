/** The connection of a model call that is cancelled in the middle of its answer. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TestCoordinator, waitFor } from "preamp/testing";
import { assert, assertEquals } from "../assert.ts";
import { CHAT } from "./provider_openai/vendors.ts";
import { fakeServer } from "./providers/fake_server.ts";
import { configOn, VENDORS } from "./providers/fake_vendor.ts";

/** Returns what collects the garbage of this process, without a flag of the test run. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

for (const vendor of [...Object.values(VENDORS), CHAT]) {
  Deno.test(`${vendor.api ?? vendor.name}: a cancelled call closes its connection, also after a garbage collection`, async () => {
    const collect = collector();
    const events = vendor.events({ text: ["Hello, ", "this is a text"] });
    const part = new TextEncoder().encode(events.slice(0, -vendor.end_events).join(""));
    let closed = false;
    const received = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(part),
      cancel: () => void (closed = true),
    });
    const headers = { "content-type": vendor.stream_type };
    await using server = fakeServer(() => new Response(body, { headers }));
    const coordinator = new TestCoordinator();
    await vendor.module.mount(coordinator, configOn(server.url, vendor));
    const abort = new AbortController();
    const request = { messages: [{ role: "user" as const, content: "Hi" }] };
    const options = { signal: abort.signal, onDelta: () => received.resolve() };
    const call = coordinator.providers[vendor.name]!.complete(request, options).catch((error) => error);
    await received.promise;
    collect();
    await new Promise((resolve) => setTimeout(resolve, 0));
    collect();
    abort.abort();
    assertEquals((await call).type, "AbortError");
    assert(await waitFor(() => closed));
  });
}
