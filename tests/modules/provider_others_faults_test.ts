/** The fault matrix over the vendors of the table. */
import { testFaults } from "./providers/faults.ts";
import { OTHER_VENDORS } from "./providers/other_vendors.ts";

for (const vendor of Object.values(OTHER_VENDORS)) testFaults(vendor);
