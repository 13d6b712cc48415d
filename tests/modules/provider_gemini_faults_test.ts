/** The fault matrix over the wire format of the Gemini API. */
import { testFaults } from "./providers/faults.ts";
import { GEMINI } from "./providers/gemini_wire.ts";

testFaults(GEMINI);
