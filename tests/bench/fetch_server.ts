/**
 * Serves `createPreamp().fetch` by a bare `Deno.serve`, without keys and rates, runs in memory. Prints its
 * address.
 */
import { createPreamp, defaultPolicy } from "preamp/server";

const policy = defaultPolicy();
policy.rates = { requests_per_minute: 0, runs_per_minute: 0 };
const preamp = createPreamp({ authenticate: null, policy, log: null });

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => void Deno.stdout.writeSync(new TextEncoder().encode(`http://127.0.0.1:${port}\n`)),
}, preamp.fetch);
