/** The app of a runtime: the pass, and the routes behind it. */
import { type App, createHttpApp, type HttpAppOptions } from "./http_app.ts";
import { createRoutes, type RoutesOptions } from "./routes.ts";

export type { App, ConnectionInfo } from "./http_app.ts";
export type { CallerBounds } from "./routes.ts";

/** What an app is made of. */
export interface AppOptions extends RoutesOptions, Omit<HttpAppOptions, "routes"> {}

/** Returns the app of a runtime. */
export function createApp(options: AppOptions): App {
  return createHttpApp({ ...options, routes: createRoutes(options) });
}
