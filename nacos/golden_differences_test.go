package nacos

// difference is a place where we answer otherwise than the recorded server on
// purpose; docs/nacos-compatibility.md tells each, in this order, with the
// first recorded answer that shows it.
type difference struct{ where, nacos, ours, why string }

var (
	fresher = difference{
		"reads after writes", "up to 0.6 s old", "never old", "nobody wants the older one",
	}
	notFrozen = difference{
		"reads while the switch `pushEnabled` is off", "what was read last, until it is on again", "the truth", "switching pushes off is no wish to read old answers",
	}
	healthWorks = difference{
		"health of a persistent instance by `PUT /ns/health/instance`, with a cluster whose checker is NONE",
		"refused, for a wrong reason", "set, and seen", "it is what the call is for; with another checker both refuse it",
	}
	keptNone = difference{
		"a cluster whose checker is NONE, over a restart", "its default TCP checker runs before the setting is loaded and makes instances unhealthy",
		"the health that was set stays", "a restart of the registry says nothing about an instance",
	}
	noGhost = difference{
		"a beat without an address", "registers an instance with port 0 that nobody owns", "20404", "no ghosts",
	}
	anyName = difference{
		"a beat whose JSON bears another name", "answers 10200 and refreshes that name, or nothing",
		"refreshes the one that was asked for", "what is answered 10200 has refreshed",
	}
	noPointer = difference{
		"a full beat with `ephemeral:false`", "trips over a null after it did the work, 500", "10200", "the work is done",
	}
	postBeat = difference{
		"`POST /ns/instance/beat`", "501", "taken like `PUT`", "documents and clients have it",
	}
	badPeriod = difference{
		"periods in metadata that are no number", "an instance that is deleted at once", "the default, said once in the log",
		"one typo does not take an instance away",
	}
	no101 = difference{
		"bad JSON in a selector or a health checker", "status 101", "400", "HTTP clients cannot read an answer of status 101",
	}
	sorted = difference{
		"list of services", "in no order", "sorted", "pages are stable",
	}
	clearer = difference{
		"a missing parameter in the catalog", "500", "400", "it is the client's fault",
	}
	parserWords = difference{
		"faults in the JSON of a beat", "words of its JSON parser", "words of ours", "the frame is the same",
	}
	everybodyIn = difference{
		"login while auth is off", "500 or 403", "a token for everybody", "clients with a password in their settings work",
	}
	ownState = difference{
		"server state", "settings of its configuration service too", "what a naming server has, and who we are", "there is no configuration service",
	}
	oneNode = difference{
		"nodes of the cluster", "figures of its consensus groups", "left out", "other nodes cannot join, so nobody may try",
	}
	otherContents = difference{
		"figures of the whole server", "those of all scenarios recorded before", "those of one scenario", "not a difference of the servers, but of how they were asked",
	}
	openAdmin = difference{
		"`/v3/admin` without a token, or with a wrong one", "403, also while auth is off", "as with the token of an administrator",
		"auth is off means that nobody is asked",
	}
	plainValue = difference{
		"booleans and numbers that are none, on v2 and v3", "500 with the words of its framework", "400, code 20002",
		"it is the client's fault, and the answer names the parameter",
	}
	metadataV3 = difference{
		"bad metadata on v3", "200 without a body", "400, code 21002 or 21005", "a client would take it for done",
	}
	sameRefusal = difference{
		"login of an unknown user, or with a wrong password, auth on", "500 or 403, in other words for each", "403, the same for both",
		"nobody learns who exists",
	}
	badLogin = difference{
		"login without a name on v3", "500", "400", "it is the client's fault",
	}
	noIdentity = difference{
		"the header of a server's identity, auth on", "everything is allowed", "it is no header of ours",
		"one more password that opens everything, for other nodes that there are none of",
	}
	guardedOps = difference{
		"switches and namespaces without a token, auth on", "told to everybody", "403", "what operators set is nobody else's business",
	}
	usersInFile = difference{
		"users, roles and permissions by the API, auth on", "made", "404", "they stand in a file, which is read again when it changes",
	}
	plainRole = difference{
		"a role for the public namespace, auth on", "2.5.1 wants it written with an empty name; takes up to 15 s", "holds as it is written, at once",
		"nobody guesses that",
	}
	readsAll = difference{
		"one instance on v3/admin, asked by a reader, auth on", "403, where lists are allowed", "a read as any other", "reading is reading",
	}
	sharper = difference{
		"an instance past its delete timeout", "deleted by a sweep, up to 5 s later", "deleted when it is due", "consumers know sooner",
	}
	alsoV3 = difference{
		"v3 asked of 2.5.1", "404", "as 3.0.3 answers", "one server speaks all three versions",
	}
)

// differences lists each recorded step that our server answers otherwise.
var differences = map[string]map[int]difference{
	"01-detail-deregister":  {18: fresher},
	"02-beat-basic":         {19: postBeat, 22: parserWords, 23: parserWords, 24: parserWords, 31: noGhost, 32: noGhost, 33: noGhost},
	"02-beat-health":        {3: fresher, 6: fresher, 16: noPointer, 18: noPointer},
	"02-beat-name-mismatch": {18: anyName, 19: anyName, 20: anyName, 24: anyName, 25: anyName, 26: anyName},
	"03-expiry-badmeta":     {10: badPeriod, 11: badPeriod},
	"03-expiry-beaten":      {7: fresher, 8: fresher},
	"04-persistent-health": {
		10: healthWorks, 11: healthWorks, 12: healthWorks, 13: healthWorks, 14: healthWorks,
		19: fresher, 20: fresher, 21: fresher, 25: fresher, 26: fresher,
	},
	"04-restart":    {16: keptNone, 18: keptNone, 23: keptNone, 25: keptNone},
	"07-freshness":  {2: fresher, 3: fresher, 7: fresher, 8: fresher, 12: fresher, 13: fresher, 17: fresher, 18: fresher},
	"07-service-v1": {8: no101, 18: sorted},
	"08-catalog":    {15: clearer},
	"08-cluster":    {15: no101, 16: no101},
	"08-operator": {
		2:  otherContents,
		14: otherContents, 17: ownState, 19: oneNode,
	},
	"08-raw-101":        {1: no101},
	"08-switch-effects": {10: notFrozen, 11: notFrozen, 13: notFrozen, 14: notFrozen},
	"09-v2":             {5: plainValue, 32: otherContents},
	"09-v3-client":      {0: alsoV3, 1: alsoV3},
	"10-auth": {
		3: sameRefusal, 8: sameRefusal, 10: alsoV3, 11: alsoV3, 12: alsoV3, 13: alsoV3, 14: alsoV3, 30: noIdentity, 36: guardedOps,
		41: ownState, 42: guardedOps, 45: usersInFile, 46: usersInFile, 47: usersInFile, 49: plainRole, 50: plainRole,
		51: usersInFile, 52: sharper,
	},
	"10-first-admin": {0: sameRefusal, 1: usersInFile, 2: usersInFile, 3: sameRefusal, 4: usersInFile},
	"10-login-auth-off": {
		0: everybodyIn, 1: everybodyIn, 2: everybodyIn, 3: everybodyIn, 4: everybodyIn, 5: everybodyIn,
		6: alsoV3, 7: alsoV3, 8: alsoV3,
	},

	"3.0.3/02-beat-health":       {3: fresher, 6: fresher},
	"3.0.3/03-expiry-beaten":     {8: fresher},
	"3.0.3/04-persistent-health": {13: healthWorks, 16: healthWorks, 24: fresher, 25: fresher, 30: fresher},
	"3.0.3/04-restart":           {18: keptNone, 25: keptNone},
	"3.0.3/07-freshness":         {3: fresher, 8: fresher, 13: fresher, 18: fresher},
	"3.0.3/07-service-v3":        {7: metadataV3, 8: no101},
	"3.0.3/08-admin-v3": {
		0: openAdmin, 1: openAdmin, 2: openAdmin, 3: openAdmin, 4: ownState, 7: openAdmin, 8: openAdmin, 9: openAdmin,
		10: openAdmin, 11: openAdmin, 14: otherContents, 16: ownState, 20: oneNode, 21: oneNode, 24: ownState,
	},
	"3.0.3/08-cluster":           {12: no101, 13: no101},
	"3.0.3/08-raw-101":           {1: no101},
	"3.0.3/08-switch-effects":    {11: notFrozen, 14: notFrozen},
	"3.0.3/09-v3-admin-instance": {0: openAdmin, 1: openAdmin, 2: openAdmin, 25: openAdmin},
	"3.0.3/09-v3-client":         {25: metadataV3, 27: plainValue},
	"3.0.3/10-auth": {
		12: sameRefusal, 14: badLogin, 44: usersInFile, 45: usersInFile, 46: usersInFile, 50: usersInFile, 59: sharper,
		61: ownState, 64: sharper, 65: readsAll,
	},
	"3.0.3/10-first-admin":    {1: usersInFile, 2: usersInFile, 4: usersInFile},
	"3.0.3/10-login-auth-off": {6: everybodyIn, 7: everybodyIn, 8: everybodyIn},
}
