/** All routes. HEAD is answered wherever GET is. */
import { META_ROUTES } from "./routes/meta.ts";
import { PLAN_ROUTES } from "./routes/plans.ts";
import type { Route } from "./routes/route.ts";
import { RUN_ROUTES } from "./routes/runs.ts";
import { SESSION_ROUTES } from "./routes/sessions.ts";

/** The table of routes. */
export const ROUTES: readonly Route[] = [...RUN_ROUTES, ...SESSION_ROUTES, ...PLAN_ROUTES, ...META_ROUTES];
