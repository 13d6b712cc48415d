/**
 * Serves `createPreamp().fetch` by a bare `Deno.serve`, without keys and rates, runs in memory. Prints its
 * address.
 */
import { createPreamp, defaultPolicy } from "preamp/server";
import { serveAnnounced } from "./announced_server.ts";

const policy = defaultPolicy();
policy.rates = { requests_per_minute: 0, runs_per_minute: 0 };
const preamp = createPreamp({ authenticate: null, policy, log: null });

serveAnnounced((request) => preamp.fetch(request));
